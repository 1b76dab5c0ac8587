"""One client's connection as the kit sees it: events of the protocol go to the parts that handle them."""

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
from services.ring.clients.holding import ClientInflow
from services.ring.clients.pulls import Pulls
from services.ring.clients.pushes import Pushes
from services.ring.clients.queues import Queues
from services.ring.clients.seeking import Seeking
from services.ring.service import RingService
from services.ring.words import OF_NODES
from services.store.model import PREFIX

RUN_PART = 32  # this many requests of a run are as much work as one request alone
RESERVED = PREFIX.encode()  # how the names of queues begin that clients may not use (5.8)


class ClientSession(QueueSession[ClientEvent, ClientConversation]):
    """The kit's `Session`, and the `Handler` of its own input. The parts share a conversation and no private state."""

    __slots__ = ("_pulls", "_pushes", "_queues")

    def __init__(self, service: RingService, limits: Limits, wire: Wire) -> None:
        conversation = ClientConversation(wire, service)
        inflow = ClientInflow(conversation, ClientConnection(limits), self)
        settings = service.settings
        unsettled = Unsettled(conversation, service, settings.clients.max_unsettled)
        super().__init__(
            conversation, service, inflow, unsettled, settings.clients.eof_grace_s, settings.request_timeout_s
        )
        seeking = Seeking(conversation, inflow)
        self._pushes = Pushes(conversation, inflow, seeking)
        self._pulls = Pulls(conversation, inflow, seeking, unsettled)
        self._queues = Queues(conversation, inflow)

    # what the kit tells

    def resumed(self, now: float) -> None:
        self._inflow.restart_clock(now)
        self._pulls.rest.go_on()
        self._inflow.proceed()

    # what the input tells

    def handle(self, event: ClientEvent) -> None:
        if isinstance(event, Refused):
            self._conversation.refuse(event)
            return
        if self._unsettled:
            self._unsettled.settle()  # the next complete valid request settles all earlier replies (tmq.md 6.1)
        if event.queue.startswith(RESERVED):
            self._not_for_clients(event)
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

    def _not_for_clients(self, event: ClientRequest) -> None:
        label, total = _label(event), _requests(event)
        self._conversation.wire.refuse("reserved_name", label)
        self._conversation.deny(self._conversation.expect(), event.echo, label, OF_NODES, total)

    def work(self, event: ClientEvent) -> int:
        """How much of a turn it takes."""
        return 1 if isinstance(event, Refused) else 1 + _requests(event) // RUN_PART

    def is_exclusive(self, event: ClientEvent) -> bool:
        """Only pushes and pulls may overlap; work on whole queues goes another way to the store than they do."""
        return isinstance(event, Create | Destroy)


def _requests(event: ClientRequest) -> int:
    """How many it is."""
    match event:
        case Push():
            return len(event.records)
        case Pull():
            return event.count
        case _:
            return 1


def _label(event: ClientRequest) -> str:
    match event:
        case Push():
            return PUSH
        case Pull():
            return PULL
        case Create():
            return CREATE
        case Destroy():
            return DESTROY
        case _:
            assert_never(event)
