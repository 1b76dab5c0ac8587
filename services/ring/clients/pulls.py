"""pull: runs of takes, whose messages are unsettled until the next request (ring.md 5.2)."""

from __future__ import annotations

from functools import partial

from protos.ring import Pull, encode_deliveries, encode_record
from services.kit.session import Slot
from services.queueing import Rest, Unsettled
from services.ring.asking import Brought, Unserved
from services.ring.clients.conversation import PULL, RING_PULL, ClientConversation, error
from services.ring.clients.holding import ClientInflow
from services.ring.clients.seeking import Seeking
from services.ring.words import EMPTY, TOO_MANY_UNSETTLED, words_for
from services.store import Delivery, Queue, StoreError
from services.store.model import OutcomeUnknown, QueuePaused, QueueUnknown, records


class PullRun:
    """pulls that are being answered together."""

    __slots__ = ("allowed", "asked", "echo", "label", "name", "queue", "slot")

    def __init__(self, slot: Slot, event: Pull, allowed: int) -> None:
        self.slot = slot
        self.echo = event.echo
        self.name = event.queue
        self.queue: Queue | None = None  # None: of the ring, or not known yet
        self.label = PULL
        self.asked = event.count
        self.allowed = allowed  # of them, how many may be given a message

    def goes_on(self, slot: Slot, answered: int) -> None:
        """So many have been given a message; the rest get replies of their own."""
        self.slot = slot
        self.asked -= answered
        self.allowed -= answered


class Pulls:
    """One connection's: a run at a time, however many takes it needs."""

    __slots__ = ("_conversation", "_inflow", "_seeking", "_unsettled", "rest")

    def __init__(
        self, conversation: ClientConversation, inflow: ClientInflow, seeking: Seeking, unsettled: Unsettled
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._seeking = seeking
        self._unsettled = unsettled
        self.rest = Rest(conversation, inflow, self._go_on)  # pulls that wait for the client to read

    def pull(self, event: Pull) -> None:
        run = PullRun(self._conversation.expect(), event, self._unsettled.admits(event.count))
        self._inflow.hold()
        if run.allowed < event.count:
            self._conversation.wire.refuse("too_many_unsettled")
        if not run.allowed:
            self._end(run, TOO_MANY_UNSETTLED)
        elif (queue := self._seeking.held(event.queue)) is None:
            self._seeking.seek(event.queue, partial(self._found, run))
        else:
            self._take(run, queue, is_fresh=False)

    def _go_on(self, run: PullRun) -> None:
        if run.queue is None:
            self._ask(run)
        else:
            self._take(run, run.queue, is_fresh=True)

    def _found(self, run: PullRun, found: Queue | StoreError) -> None:
        if self._conversation.is_lost:
            return
        if isinstance(found, Queue):
            self._take(run, found, is_fresh=True)
        elif isinstance(found, QueueUnknown) and self._conversation.service.asker is not None:
            self._ask(run)
        else:
            self._refused(run, found)

    def _take(self, run: PullRun, queue: Queue, *, is_fresh: bool) -> None:
        """is_fresh: it was looked for just now, and will not be found if it is gone already."""
        run.queue = queue
        conversation = self._conversation
        done = partial(self._taken, run, queue, is_fresh)
        conversation.service.pipe(queue).messages.take(conversation.source, queue, run.allowed, done)

    def _taken(
        self, run: PullRun, queue: Queue, is_fresh: bool, got: list[Delivery] | StoreError, more: bool
    ) -> None:
        if isinstance(got, QueueUnknown) and not is_fresh:
            self._seeking.seek(run.name, partial(self._found, run), gone=queue)
        elif isinstance(got, StoreError):
            self._refused(run, got)
        elif self._conversation.is_lost:
            self._return(queue, got)
        else:
            self._give(run, queue, got, more)

    def _return(self, queue: Queue, got: list[Delivery]) -> None:
        """The client has gone before they came (tmq.md 6.2)."""
        if got and not got[0].settled:
            self._conversation.service.pipe(queue).messages.give_back(got)

    def _give(self, run: PullRun, queue: Queue, got: list[Delivery], more: bool) -> None:
        if got and not got[0].settled:
            self._unsettled.add(got)
        count = sum(d.count for d in got)
        bodies = [record for d in got for record in records.split(records.plain(d.blob, d.count), d.count)]
        for d in got:
            d.drop_bodies()  # a lease may last, and there may be a thousand large ones
        reply = encode_deliveries(run.echo, bodies)
        # one call carries only so many octets, for all who ask together: perhaps none for this one yet
        if more and count < run.allowed:
            self._answer_some(run, reply, count)
        else:
            self._end(run, self._why_no_more(run, queue, count), reply, count)

    def _why_no_more(self, run: PullRun, queue: Queue, count: int) -> str:
        if count == run.allowed:
            return TOO_MANY_UNSETTLED  # if more were asked for
        return words_for(QueuePaused()) if queue.spec.paused else EMPTY

    def _answer_some(self, run: PullRun, reply: bytes, count: int) -> None:
        """Answers `count` of the run; the others come next, but not before the client reads (tmq.md 7.3)."""
        conversation = self._conversation
        slot = run.slot
        run.goes_on(conversation.expect(), count)
        conversation.reply(slot, reply, run.label, count, count)
        self.rest.take(run)

    def _refused(self, run: PullRun, why: StoreError) -> None:
        conversation = self._conversation
        if isinstance(why, OutcomeUnknown):
            conversation.unknown(why)  # what was taken all the same goes back after a while
            return
        conversation.wire.refuse(why.reason, str(why))
        self._end(run, words_for(why))

    def _end(self, run: PullRun, words: str, reply: bytes = b"", count: int = 0) -> None:
        """Answers the run: `count` of them have their messages in the reply, the others get an ERROR."""
        if run.asked > count:
            reply += error(run.echo, words) * (run.asked - count)
        self._conversation.reply(run.slot, reply, run.label, count, run.asked)
        self._inflow.free()

    # around the ring

    def _ask(self, run: PullRun) -> None:
        """One after the other: were two under way and a link broke, the second might overtake the first."""
        asker = self._conversation.service.asker
        assert asker is not None
        run.label = RING_PULL
        asker.pull(run.name, partial(self._brought, run))

    def _brought(self, run: PullRun, brought: Brought | Unserved) -> None:
        conversation = self._conversation
        if isinstance(brought, Unserved):
            if brought.reason != EMPTY:
                conversation.wire.refuse("unserved", brought.reason)
            self._end(run, brought.reason)
        elif not conversation.is_lost:  # else it is not settled, and goes back (5.4)
            self._unsettled.add_brought(brought.settle)
            reply = encode_deliveries(run.echo, [encode_record(brought.body)])
            if run.allowed > 1:
                self._answer_some(run, reply, 1)
            else:
                self._end(run, TOO_MANY_UNSETTLED, reply, 1)
