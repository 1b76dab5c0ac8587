"""Handle MSG_DATA: put runs of messages into the store, and confirm RELIABLE ones in order (rqp_mca.md 2.1)."""

from __future__ import annotations

import logging
from functools import partial

from protos.rqp_mca import Data, MessageType, Request, encode_data_confirm
from services.kit.session import Inflow, Slot
from services.rqp.mca.assignments import Assignments
from services.rqp.mca.conversation import McaConversation
from services.rqp.mca.trace_propagation import IncomingTraces, TracedPlaces, stamp
from services.store import Queue, Source, StoreError
from services.store.model import AccessDenied, OutcomeUnknown, QueueUnknown, Refusals

log = logging.getLogger(__name__)

RELIABLE, UNRELIABLE = "data", "data_unreliable"  # labels of the counters


class Inserts:
    """The insertions of one connection. Runs may overlap: the pipe keeps them, and the confirmations, in order."""

    __slots__ = ("_assignments", "_confirm", "_domain", "_has_refused", "_traces", "conversation", "inflow")

    def __init__(
        self, conversation: McaConversation, inflow: Inflow[Request], assignments: Assignments
    ) -> None:
        self.conversation = conversation
        self.inflow = inflow
        self._assignments = assignments
        self._domain = ""  # of the last RELIABLE run
        self._has_refused = False  # a RELIABLE message
        hops, peer = conversation.receiver.service.store.trace_propagation, conversation.wire.peer
        self._traces = None if hops is None else IncomingTraces(hops, peer.address, peer.port)
        self._confirm = b""  # MSG_DATA_CONFIRM in the connection's profile

    def is_exclusive(self, event: Data) -> bool:
        """Return whether a run must wait for those before it.

        RELIABLE runs overlap only within one domain, whose pipe keeps them in order (2.1).
        """
        if event.kind is not MessageType.RELIABLE:
            return False
        queue = self.conversation.receiver.known(event.queue_id)
        return queue is None or queue.domain != self._domain

    def insert(self, event: Data) -> None:
        """Put a run into the queue that it names, and reply."""
        conversation = self.conversation
        slot = conversation.expect()
        traced = [] if self._traces is None else self._traces.received(event)
        queue = conversation.receiver.known(event.queue_id)
        if queue is not None:
            self._publish(slot, event, traced, queue)
            return
        self.inflow.hold()
        found = conversation.receiver.find(event.queue_id)
        conversation.receiver.service.background.run_read(found, partial(self._found, slot, event, traced))

    def _found(self, slot: Slot, event: Data, traced: TracedPlaces, queue: Queue | StoreError) -> None:
        if isinstance(queue, StoreError):
            self._refused(slot, event, None, queue)
        else:
            self._publish(slot, event, traced, queue)
        self.inflow.free()

    def _publish(self, slot: Slot, event: Data, traced: TracedPlaces, queue: Queue) -> None:
        """Put the run in unless another connection holds the queue (`?`, 2.3).

        RELIABLE runs are put in order: nothing after a refused message (2.1).
        """
        # a client without access keeps no queue from others
        if self.conversation.source.refusal(queue) is None:
            self._assignments.named(queue)
        conversation, is_reliable = self.conversation, event.kind is MessageType.RELIABLE
        if is_reliable:
            self._domain = queue.domain
        pipe = conversation.receiver.service.pipe(queue)
        done = partial(self._published, slot, event, queue)
        holder = f"?{conversation.holder}"
        carried = stamp(queue, event, traced) if traced else ()
        records, origin = event.records, conversation.origin
        pipe.messages.publish(
            conversation.source,
            queue,
            records,
            origin,
            done,
            holder=holder,
            in_order=is_reliable,
            carried=carried,
        )
        if pipe.waiting.congested:
            self.inflow.hold_until_clear(pipe.waiting.when_clear)

    def _published(self, slot: Slot, event: Data, queue: Queue, outcome: Refusals | StoreError) -> None:
        if not outcome:
            number = len(event.records)
            if event.kind is MessageType.RELIABLE:
                self.conversation.reply(slot, self._confirms(number), RELIABLE, number, number)
            else:
                self.conversation.reply(slot, b"", UNRELIABLE, number, number)
        else:
            why = outcome if isinstance(outcome, StoreError) else outcome[0][1]
            if isinstance(why, QueueUnknown):
                self.conversation.receiver.forget()
            self._refused(slot, event, queue, outcome)
        self.inflow.run_answered()

    def _confirms(self, number: int) -> bytes:
        if not self._confirm:
            profile = self.conversation.parser.profile
            assert profile is not None  # known since the first message
            self._confirm = encode_data_confirm(profile)
        return self._confirm * number

    # refusals

    def _refused(self, slot: Slot, event: Data, queue: Queue | None, why: Refusals | StoreError) -> None:
        """Handle the messages of a run that are not in the queue. queue: None if it does not exist."""
        number = len(event.records)
        refused = [(index, why) for index in range(number)] if isinstance(why, StoreError) else why
        if event.kind is MessageType.RELIABLE:
            self._refuse_reliable(slot, event, *refused[0])
        elif queue is None or isinstance(refused[0][1], QueueUnknown | OutcomeUnknown | AccessDenied):
            # no dead letters exist, this client has no access to them, or the message may be in the queue
            self._lose(slot, event, refused)
        else:
            self._bury(slot, event, queue, refused)

    def _refuse_reliable(self, slot: Slot, event: Data, first: int, why: StoreError) -> None:
        """Confirm the messages before the first refused one, then close: a later one would seem to be its."""
        conversation = self.conversation
        if self._has_refused:  # the connection is closing; this run comes later
            conversation.reply(slot, b"", RELIABLE, 0, len(event.records))
            return
        self._has_refused = True
        conversation.wire.refuse(why.reason, f"queue {event.queue_id}: {why}")
        conversation.reply_last(slot, self._confirms(first), RELIABLE, first, len(event.records))

    def _bury(self, slot: Slot, event: Data, queue: Queue, refused: Refusals) -> None:
        conversation = self.conversation
        source = Source(conversation.source.client, begins_traces=False)  # already decided
        _, first = refused[0]
        conversation.wire.refuse(first.reason, f"queue {event.queue_id}: UNRELIABLE, dead-lettered: {first}")
        burials = _Burials(self, slot, len(refused), len(event.records))
        pipe = conversation.receiver.service.pipe(queue)
        for index, why in refused:
            record = event.records[index]
            pipe.messages.bury(
                source, queue, record, conversation.origin, why.reason, str(why), burials.buried
            )

    def _lose(self, slot: Slot, event: Data, refused: Refusals) -> None:
        conversation = self.conversation
        _, why = refused[0]
        conversation.receiver.lost.inc(len(refused))
        conversation.wire.refuse(why.reason, f"queue {event.queue_id}: UNRELIABLE messages lost: {why}")
        total = len(event.records)
        conversation.reply(slot, b"", UNRELIABLE, total - len(refused), total)


class _Burials:
    """UNRELIABLE messages of one run being dead-lettered; their sender no longer has them."""

    __slots__ = ("_inserts", "_left", "_slot", "_total")

    def __init__(self, inserts: Inserts, slot: Slot, refused: int, total: int) -> None:
        self._inserts = inserts
        self._slot = slot
        self._left = refused
        self._total = (total - refused, total)

    def buried(self, error: StoreError | None) -> None:
        """Count one that was dead-lettered or lost; reply after the last."""
        self._left -= 1
        if error is not None:
            self._inserts.conversation.receiver.lost.inc()
            text = "UNRELIABLE message lost, it could not be dead-lettered: %s"
            log.error(text, error, extra={"action": "rqp_message_lost"})
        if self._left == 0:
            self._inserts.conversation.reply(self._slot, b"", UNRELIABLE, *self._total)
            self._inserts.inflow.run_answered()
