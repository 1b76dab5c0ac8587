"""push: runs of messages go to the store, or around the ring, and are answered in order (ring.md 5.2, 5.3)."""

from __future__ import annotations

from functools import partial

from protos.ring import MAX_RING_MESSAGE, Push, encode_replies
from services.kit.session import Slot
from services.ring.clients.conversation import PUSH, RING_PUSH, ClientConversation, error
from services.ring.clients.inflow import ClientInflow
from services.ring.clients.queue_lookup import QueueLookup
from services.ring.error_texts import TOO_LARGE_FOR_THE_RING, error_text
from services.ring.remote_queues import NotDone, RemoteQueues
from services.store import Queue, StoreError
from services.store.model import OutcomeUnknown, QueueUnknown, Refusals, records

HEAD = records.HEAD.size  # octets of a record's length field


class Pushes:
    """The pushes of one connection. Runs may overlap: one ordered pipe takes them (5.2)."""

    __slots__ = ("_conversation", "_inflow", "_lookup")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow, lookup: QueueLookup) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._lookup = lookup

    def push(self, event: Push) -> None:
        """Publish a run of messages to the local store, or send them around the ring."""
        slot = self._conversation.expect()
        queue = self._lookup.held(event.queue)
        if queue is None:
            self._lookup.seek(event.queue, partial(self._found, slot, event))
        else:
            self._publish(slot, event, queue, is_fresh=False)

    def _found(self, slot: Slot, event: Push, found: Queue | StoreError) -> None:
        remote_queues = self._conversation.service.remote_queues
        if isinstance(found, Queue):
            self._publish(slot, event, found, is_fresh=True)
        elif isinstance(found, QueueUnknown) and remote_queues is not None:
            self._ask(slot, event, remote_queues)
        else:
            self._refused(slot, event, found)

    def _publish(self, slot: Slot, event: Push, queue: Queue, *, is_fresh: bool) -> None:
        """Publish to the store. is_fresh: the queue was just looked up, so do not look it up again."""
        conversation = self._conversation
        pipe = conversation.service.pipe(queue)
        done = partial(self._published, slot, event, queue, is_fresh)
        pipe.messages.publish(conversation.source, queue, event.records, conversation.origin, done)
        if pipe.waiting.congested:
            self._inflow.hold_until_clear(pipe.waiting.when_clear)

    def _published(
        self, slot: Slot, event: Push, queue: Queue, is_fresh: bool, outcome: Refusals | StoreError
    ) -> None:
        if not outcome:
            number = len(event.records)
            self._conversation.reply(slot, encode_replies(event.echo, number), PUSH, number, number)
        elif not is_fresh and _is_gone(outcome, len(event.records)):
            self._lookup.seek(event.queue, partial(self._found, slot, event), gone=queue)
            return
        elif isinstance(outcome, StoreError):
            self._refused(slot, event, outcome)
        else:
            self._partly_refused(slot, event, outcome)
        self._inflow.run_answered()

    def _refused(self, slot: Slot, event: Push, why: StoreError) -> None:
        conversation = self._conversation
        if isinstance(why, OutcomeUnknown):
            conversation.unknown(why)
            return
        conversation.wire.refuse(why.reason, str(why))
        conversation.deny(slot, event.echo, PUSH, error_text(why), len(event.records))

    def _partly_refused(self, slot: Slot, event: Push, refusals: Refusals) -> None:
        _, why = refusals[0]
        self._conversation.wire.refuse(why.reason, str(why))
        denied = {index: error(event.echo, error_text(why)) for index, why in refusals}
        self._answer(slot, event, PUSH, denied)

    def _answer(self, slot: Slot, event: Push, label: str, denied: dict[int, bytes]) -> None:
        """Reply ERROR to the pushes in `denied`, by place in the run, and OK to the others."""
        total, ok = len(event.records), encode_replies(event.echo, 1)
        reply = b"".join([denied.get(index, ok) for index in range(total)])
        self._conversation.reply(slot, reply, label, total - len(denied), total)

    # around the ring

    def _ask(self, slot: Slot, event: Push, remote_queues: RemoteQueues) -> None:
        """Send all messages at once: the ring keeps their order. No other request begins until all are answered."""
        self._inflow.hold()
        asked = _Asked(len(event.records))
        for index, record in enumerate(event.records):
            done = partial(self._asked, slot, event, asked, index)
            if len(record) - HEAD > MAX_RING_MESSAGE:
                done(NotDone(TOO_LARGE_FOR_THE_RING))
            else:
                remote_queues.push(event.queue, record[HEAD:], done)

    def _asked(self, slot: Slot, event: Push, asked: _Asked, index: int, outcome: NotDone | None) -> None:
        if outcome is not None:
            asked.reason = outcome.reason
            asked.denied[index] = error(event.echo, outcome.reason)
        asked.left -= 1
        if not asked.left:
            if asked.denied:
                self._conversation.wire.refuse("unserved", asked.reason)
            self._answer(slot, event, RING_PUSH, asked.denied)
            self._inflow.free()


def _is_gone(outcome: Refusals | StoreError, total: int) -> bool:
    """Return whether the queue no longer exists, so that no message of a run of `total` was stored."""
    if isinstance(outcome, StoreError):
        return isinstance(outcome, QueueUnknown)
    return len(outcome) == total and all(isinstance(why, QueueUnknown) for _, why in outcome)


class _Asked:
    """A run of pushes on its way around the ring."""

    __slots__ = ("denied", "left", "reason")

    def __init__(self, total: int) -> None:
        self.left = total  # pushes without an answer
        self.denied: dict[int, bytes] = {}  # ERROR replies by place in the run
        self.reason = ""  # of one of the denied pushes
