"""push: runs of messages go to the store, or around the ring, and are answered in order (ring.md 5.2, 5.3)."""

from __future__ import annotations

from functools import partial

from protos.ring import MAX_RING_MESSAGE, Push, encode_replies
from services.kit.session import Slot
from services.ring.asking import Asker, Unserved
from services.ring.clients.conversation import PUSH, RING_PUSH, ClientConversation, error
from services.ring.clients.holding import ClientInflow
from services.ring.clients.seeking import Seeking
from services.ring.words import TOO_LARGE_FOR_THE_RING, words_for
from services.store import Queue, StoreError
from services.store.model import OutcomeUnknown, QueueUnknown, Refusals, records

HEAD = records.HEAD.size  # of a record: its length


class Pushes:
    """One connection's. Runs may overlap: one ordered pipe takes them, whatever becomes of each (5.2)."""

    __slots__ = ("_conversation", "_inflow", "_seeking")

    def __init__(self, conversation: ClientConversation, inflow: ClientInflow, seeking: Seeking) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._seeking = seeking

    def push(self, event: Push) -> None:
        slot = self._conversation.expect()
        queue = self._seeking.held(event.queue)
        if queue is None:
            self._seeking.seek(event.queue, partial(self._found, slot, event))
        else:
            self._publish(slot, event, queue, is_fresh=False)

    def _found(self, slot: Slot, event: Push, found: Queue | StoreError) -> None:
        asker = self._conversation.service.asker
        if isinstance(found, Queue):
            self._publish(slot, event, found, is_fresh=True)
        elif isinstance(found, QueueUnknown) and asker is not None:
            self._ask(slot, event, asker)
        else:
            self._refused(slot, event, found)

    def _publish(self, slot: Slot, event: Push, queue: Queue, *, is_fresh: bool) -> None:
        """is_fresh: it was looked for just now, and will not be found if it is gone already."""
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
            self._seeking.seek(event.queue, partial(self._found, slot, event), gone=queue)
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
        conversation.deny(slot, event.echo, PUSH, words_for(why), len(event.records))

    def _partly_refused(self, slot: Slot, event: Push, refusals: Refusals) -> None:
        _, why = refusals[0]
        self._conversation.wire.refuse(why.reason, str(why))
        denied = {index: error(event.echo, words_for(why)) for index, why in refusals}
        self._answer(slot, event, PUSH, denied)

    def _answer(self, slot: Slot, event: Push, label: str, denied: dict[int, bytes]) -> None:
        """OK to all but those."""
        total, ok = len(event.records), encode_replies(event.echo, 1)
        reply = b"".join([denied.get(index, ok) for index in range(total)])
        self._conversation.reply(slot, reply, label, total - len(denied), total)

    # around the ring

    def _ask(self, slot: Slot, event: Push, asker: Asker) -> None:
        """All at once: the ring keeps them in order. Nothing else begins before all are answered."""
        self._inflow.hold()
        asked = _Asked(len(event.records))
        for index, record in enumerate(event.records):
            done = partial(self._asked, slot, event, asked, index)
            if len(record) - HEAD > MAX_RING_MESSAGE:
                done(Unserved(TOO_LARGE_FOR_THE_RING))
            else:
                asker.push(event.queue, record[HEAD:], done)

    def _asked(self, slot: Slot, event: Push, asked: _Asked, index: int, outcome: Unserved | None) -> None:
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
    """Whether the queue was no more, and so none of a run of `total` was put anywhere."""
    if isinstance(outcome, StoreError):
        return isinstance(outcome, QueueUnknown)
    return len(outcome) == total and all(isinstance(why, QueueUnknown) for _, why in outcome)


class _Asked:
    """A run of pushes that goes around the ring."""

    __slots__ = ("denied", "left", "reason")

    def __init__(self, total: int) -> None:
        self.left = total  # not answered yet
        self.denied: dict[int, bytes] = {}  # by place in the run: the ERROR
        self.reason = ""  # of one of them
