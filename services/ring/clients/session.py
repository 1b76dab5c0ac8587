"""The session of one client connection: it passes each event to the part that handles it."""

from __future__ import annotations

from typing import assert_never

from protos.ring import (
    ClientConnection,
    ClientEvent,
    ClientRequest,
    Create,
    Destroy,
    Limits,
    Pull,
    Push,
    Refused,
)
from services.kit.session import Wire
from services.queueing import QueueSession, Unsettled
from services.ring.clients.conversation import CREATE, DESTROY, PULL, PUSH, ClientConversation
from services.ring.clients.inflow import ClientInflow
from services.ring.clients.pulls import Pulls
from services.ring.clients.pushes import Pushes
from services.ring.clients.queue_lookup import QueueLookup
from services.ring.clients.queues import Queues
from services.ring.error_texts import OF_NODES
from services.ring.service import RingService
from services.store.model import PREFIX

LABELS = {Push: PUSH, Pull: PULL, Create: CREATE, Destroy: DESTROY}
RUN_PART = 32  # requests of a run that are as much work as one request alone
RESERVED = PREFIX.encode()  # prefix of queue names that clients may not use (5.8)


class ClientSession(QueueSession[ClientEvent, ClientConversation]):
    """The kit's `Session`, and the `Handler` of its own input; its parts share a conversation."""

    __slots__ = ("_pulls", "_pushes", "_queues")

    def __init__(self, service: RingService, limits: Limits, wire: Wire) -> None:
        conversation = ClientConversation(wire, service)
        inflow = ClientInflow(conversation, ClientConnection(limits), self)
        settings = service.settings
        unsettled = Unsettled(conversation, service, settings.clients.max_unsettled, inflow.run_answered)
        super().__init__(
            conversation, service, inflow, unsettled, settings.clients.eof_grace_s, settings.request_timeout_s
        )
        lookup = QueueLookup(conversation, inflow)
        self._pushes = Pushes(conversation, inflow, lookup)
        self._pulls = Pulls(conversation, inflow, lookup, unsettled)
        self._queues = Queues(conversation, inflow)

    def resumed(self, now: float) -> None:
        """Continue a pull that waited for the client to read, then the input."""
        self._inflow.restart_clock(now)
        self._pulls.rest.go_on()
        self._inflow.proceed()

    def handle(self, event: ClientEvent) -> None:
        """Carry out one request, or refuse it."""
        if isinstance(event, Refused):
            self._conversation.refuse(event)
            return
        if self._unsettled:
            self._unsettled.settle()  # a valid request settles all earlier replies (tmq.md 6.1)
        if event.queue.startswith(RESERVED):
            self._refuse_reserved(event)
            return
        match event:
            case Push():
                self._pushes.push(event)
            case Pull():
                self._pulls.pull(event)
            case Create():
                self._queues.create(event)
            case Destroy():
                self._queues.destroy(event)
            case _:
                assert_never(event)

    def _refuse_reserved(self, event: ClientRequest) -> None:
        label, total = LABELS[type(event)], _requests(event)
        self._conversation.wire.refuse("reserved_name", label)
        self._conversation.deny(self._conversation.expect(), event.echo, label, OF_NODES, total)

    def work(self, event: ClientEvent) -> int:
        """Return the event's share of a turn."""
        return 1 if isinstance(event, Refused) else 1 + _requests(event) // RUN_PART

    def is_exclusive(self, event: ClientEvent) -> bool:
        """Return whether the event must wait for all replies before it.

        Only pushes and pulls may overlap: operations on whole queues take another way to the store.
        """
        return isinstance(event, Create | Destroy)


def _requests(event: ClientRequest) -> int:
    """Return the number of requests in an event."""
    if isinstance(event, Push):
        return len(event.records)
    return event.count if isinstance(event, Pull) else 1
