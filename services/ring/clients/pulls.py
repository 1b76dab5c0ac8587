"""pull: runs of takes, whose messages stay unsettled until the next request (ring.md 5.2)."""

from __future__ import annotations

from functools import partial

from protos.ring import Pull, encode_deliveries, encode_record
from services.kit.session import Slot
from services.queueing import Rest, Unsettled
from services.ring.clients.conversation import PULL, RING_PULL, ClientConversation, error
from services.ring.clients.inflow import ClientInflow
from services.ring.clients.queue_lookup import QueueLookup
from services.ring.error_texts import EMPTY, TOO_MANY_UNSETTLED, error_text
from services.ring.remote_queues import NotDone, RemoteMessage
from services.store import Delivery, Queue, StoreError
from services.store.model import OutcomeUnknown, QueuePaused, QueueUnknown, records


class PullRun:
    """Consecutive pulls that are answered together."""

    __slots__ = ("allowed", "asked", "echo", "label", "name", "queue", "slot")

    def __init__(self, slot: Slot, event: Pull, allowed: int) -> None:
        self.slot = slot
        self.echo = event.echo
        self.name = event.queue
        self.queue: Queue | None = None  # None: remote, or not looked up yet
        self.label = PULL
        self.asked = event.count
        self.allowed = allowed  # pulls that may get a message

    def goes_on(self, slot: Slot, answered: int) -> None:
        """Take off the `answered` pulls; the rest get replies of their own in `slot`."""
        self.slot = slot
        self.asked -= answered
        self.allowed -= answered


class Pulls:
    """The pulls of one connection, one run at a time, however many takes a run needs."""

    __slots__ = ("_conversation", "_inflow", "_lookup", "_unsettled", "rest")

    def __init__(
        self,
        conversation: ClientConversation,
        inflow: ClientInflow,
        lookup: QueueLookup,
        unsettled: Unsettled,
    ) -> None:
        self._conversation = conversation
        self._inflow = inflow
        self._lookup = lookup
        self._unsettled = unsettled
        self.rest = Rest(conversation, inflow, self._go_on)  # pulls waiting for the client to read

    def pull(self, event: Pull) -> None:
        """Take messages for a run of pulls from the local store, or from the ring."""
        run = PullRun(self._conversation.expect(), event, self._unsettled.admits(event.count))
        self._inflow.hold()
        if run.allowed < event.count:
            self._conversation.wire.refuse("too_many_unsettled")
        if not run.allowed:
            self._end(run, TOO_MANY_UNSETTLED)
        elif (queue := self._lookup.held(event.queue)) is None:
            self._lookup.seek(event.queue, partial(self._found, run))
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
        elif isinstance(found, QueueUnknown) and self._conversation.service.remote_queues is not None:
            self._ask(run)
        else:
            self._refused(run, found)

    def _take(self, run: PullRun, queue: Queue, *, is_fresh: bool) -> None:
        """Take messages from the store. is_fresh: the queue was just looked up, so do not look it up again."""
        run.queue = queue
        conversation = self._conversation
        done = partial(self._taken, run, queue, is_fresh)
        conversation.service.pipe(queue).messages.take(conversation.source, queue, run.allowed, done)

    def _taken(
        self, run: PullRun, queue: Queue, is_fresh: bool, got: list[Delivery] | StoreError, more: bool
    ) -> None:
        if isinstance(got, QueueUnknown) and not is_fresh:
            self._lookup.seek(run.name, partial(self._found, run), gone=queue)
        elif isinstance(got, StoreError):
            self._refused(run, got)
        elif self._conversation.is_lost:
            self._return(queue, got)
        else:
            self._give(run, queue, got, more)

    def _return(self, queue: Queue, got: list[Delivery]) -> None:
        """Give the messages back: the client has gone before they came (tmq.md 6.2)."""
        if got and not got[0].settled:
            self._conversation.service.pipe(queue).messages.give_back(got)

    def _give(self, run: PullRun, queue: Queue, got: list[Delivery], more: bool) -> None:
        if got and not got[0].settled:
            self._unsettled.add(got)
        count = sum(d.count for d in got)
        bodies = [record for d in got for record in records.split(records.plain(d.blob, d.count), d.count)]
        for d in got:
            d.drop_bodies()  # leases may last long, of up to a thousand large messages
        reply = encode_deliveries(run.echo, bodies)
        # A call is limited in octets for all connections together: this one may have got nothing yet.
        if more and count < run.allowed:
            self._answer_some(run, reply, count)
        else:
            self._end(run, self._why_no_more(run, queue, count), reply, count)

    def _why_no_more(self, run: PullRun, queue: Queue, count: int) -> str:
        if count == run.allowed:
            return TOO_MANY_UNSETTLED  # if more were asked for
        return error_text(QueuePaused()) if queue.spec.paused else EMPTY

    def _answer_some(self, run: PullRun, reply: bytes, count: int) -> None:
        """Reply to `count` pulls of the run; continue once the client has read (tmq.md 7.3)."""
        conversation = self._conversation
        slot = run.slot
        run.goes_on(conversation.expect(), count)
        conversation.reply(slot, reply, run.label, count, count)
        self.rest.take(run)

    def _refused(self, run: PullRun, why: StoreError) -> None:
        conversation = self._conversation
        if isinstance(why, OutcomeUnknown):
            conversation.unknown(why)  # messages taken all the same return after their lease
            return
        conversation.wire.refuse(why.reason, str(why))
        self._end(run, error_text(why))

    def _end(self, run: PullRun, text: str, reply: bytes = b"", count: int = 0) -> None:
        """Reply to the run: `count` pulls have their messages in `reply`, the others get an ERROR."""
        if run.asked > count:
            reply += error(run.echo, text) * (run.asked - count)
        self._conversation.reply(run.slot, reply, run.label, count, run.asked)
        self._inflow.free()

    # around the ring

    def _ask(self, run: PullRun) -> None:
        """Pull one message after the other: if a link broke, the second of two could overtake the first."""
        remote_queues = self._conversation.service.remote_queues
        assert remote_queues is not None
        run.label = RING_PULL
        remote_queues.pull(run.name, partial(self._brought, run))

    def _brought(self, run: PullRun, brought: RemoteMessage | NotDone) -> None:
        conversation = self._conversation
        if isinstance(brought, NotDone):
            if brought.reason != EMPTY:
                conversation.wire.refuse("unserved", brought.reason)
            self._end(run, brought.reason)
        elif not conversation.is_lost:  # otherwise unsettled: it returns to its queue (5.4)
            self._unsettled.add_brought(brought.settle)
            reply = encode_deliveries(run.echo, [encode_record(brought.body)])
            if run.allowed > 1:
                self._answer_some(run, reply, 1)
            else:
                self._end(run, TOO_MANY_UNSETTLED, reply, 1)
