"""One TMQ connection: events of the protocol become verbs of the store, their outcomes become replies.

Requests are handled one after the other. ENQs alone may overlap: they go through one ordered pipe and are answered
in order. Everything else is waited for, and meanwhile the rest of the input stays unparsed. Work on whole queues goes
another way to the store, so it waits for the ENQs before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, assert_never

from protos import tmq
from protos.tmq import Dialect, Operation
from protos.types import PeerError
from services.kit.session import Wire
from services.store import Delivery, Pipe, Queue, Source, StoreError, records
from services.store.errors import OutcomeUnknown, QueueUnknown
from services.store.operations import Refusals
from services.tmq.answers import Answers, Slot
from services.tmq.service import TmqService, decode_name
from services.tmq.transaction import Transaction

ENQ_STATUS = {
    dialect: tuple(tmq.encode_status(dialect, Operation.ENQ, ok) for ok in (True, False))
    for dialect in Dialect
}
MAX_ENQ_RUNS = 64  # runs of ENQs of one connection that may wait for the store at a time
WHOLE_QUEUE = frozenset((tmq.Create, tmq.Delete, tmq.Open))  # these do not go through the pipe
FORBIDDEN = {
    Operation.CREATE: "create_forbidden",
    Operation.DELETE: "not_owner",
}  # why the edge itself says no


class Handle(NamedTuple):
    """A queue that this connection has opened."""

    queue: Queue
    pipe: Pipe


class DequeueRun:
    """DNQs that are being answered together."""

    __slots__ = ("allowed", "asked", "slot")

    def __init__(self, slot: Slot, asked: int) -> None:
        self.slot = slot
        self.asked = asked
        self.allowed = 0  # of them, how many may be given a message


class Linger:
    """After a FIN: replies that wait for the peer's TCP to acknowledge them (6.1)."""

    __slots__ = ("moved", "unsent", "until")

    def __init__(self, until: float, now: float, unsent: int) -> None:
        self.until = until  # when to look next
        self.moved = now  # when some of them were last acknowledged
        self.unsent = unsent


class TmqSession:
    __slots__ = (
        "_answers",
        "_busy",
        "_closing",
        "_congested",
        "_dialect",
        "_drained",
        "_eof",
        "_eof_parsed",
        "_events",
        "_gone",
        "_handles",
        "_held",
        "_input",
        "_linger",
        "_origin",
        "_paused",
        "_protocol",
        "_pumping",
        "_rest",
        "_service",
        "_source",
        "_transaction",
        "_unsettled",
        "_unsettled_count",
        "_violation",
        "_wire",
    )

    def __init__(self, wire: Wire, service: TmqService, dialect: Dialect, limits: tmq.Limits) -> None:
        self._wire = wire
        self._service = service
        self._dialect = dialect
        self._protocol = tmq.Connection(dialect, limits)
        self._origin = f"tmq {wire.peer.certificate or wire.peer.address}"
        self._source = Source()
        self._answers = Answers()
        self._handles: dict[bytes, Handle] = {}
        self._unsettled: list[Delivery] = []
        self._unsettled_count = 0
        self._transaction: Transaction | None = None
        # input that waits: the event at hand, the parser's rest, whole chunks
        self._held: tmq.Event | None = None
        self._events: Iterator[tmq.Event] | None = None
        self._input: deque[bytes] | None = None
        self._rest: tuple[Queue, DequeueRun] | None = None  # DNQs that wait for the client to read
        self._busy = False
        self._pumping = False
        self._paused = False
        self._congested = False
        # how it ends
        self._violation: PeerError | None = None
        self._eof = False
        self._eof_parsed = False
        self._closing = False
        self._drained = False
        self._gone = False
        self._linger: Linger | None = None

    # input

    def received(self, data: bytes, now: float) -> None:
        if self._closing:
            return
        if self._is_waiting() or self._congested or len(self._answers) >= MAX_ENQ_RUNS:
            if self._input is None:
                self._input = deque()
            self._input.append(data)
            self._pause()
            return
        self._pump(self._protocol.receive(data, now))

    def _is_waiting(self) -> bool:
        return self._busy or self._held is not None or self._events is not None or bool(self._input)

    def _pump(self, events: Iterator[tmq.Event]) -> None:
        """Handles events until one must be waited for; good ones before a bad one all count (tmq.md 3.2)."""
        self._pumping = True
        first = True  # whoever called has looked whether it may be handled
        try:
            for event in events:
                if (not first and self._must_wait()) or self._comes_too_early(event):
                    self._held, self._events = event, events
                    self._pause()
                    return
                first = False
                self._handle(event)
                if self._closing:
                    break
            self._events = None
        except PeerError as error:
            self._events = None
            self._violation = error
            self._closing = True
        finally:
            self._pumping = False
        if self._closing or self._eof_parsed or self._drained:
            self._end_if_done()

    def _must_wait(self) -> bool:
        return self._busy or len(self._answers) >= MAX_ENQ_RUNS or self._congested or self._wire.is_blocked()

    def _comes_too_early(self, event: tmq.Event) -> bool:
        return type(event) in WHOLE_QUEUE and len(self._answers) > 0

    def _continue(self) -> None:
        """Something that was waited for has come: go on with the input, as far as it goes."""
        while not (self._pumping or self._closing or self._gone or self._must_wait()):
            if self._held is not None:
                if self._comes_too_early(self._held):
                    break
                event, self._held = self._held, None
                self._pumping = True
                try:
                    self._handle(event)
                finally:
                    self._pumping = False
            elif self._events is not None:
                events, self._events = self._events, None
                self._pump(events)
            elif self._input:
                self._pump(self._protocol.receive(self._input.popleft(), self._wire.loop_time()))
            elif self._eof and not self._eof_parsed:
                self._eof_parsed = True
                self._pump(self._protocol.receive_eof(self._wire.loop_time()))
            else:
                self._resume()
                break
        self._leave_it_to_the_output()
        self._end_if_done()

    def _leave_it_to_the_output(self) -> None:
        """While output waits, the kit holds reading up and tells when both go on (`resumed`): unless we do so too."""
        if self._wire.is_blocked():
            self._resume()

    def _pause(self) -> None:
        if not (self._paused or self._gone or self._wire.is_blocked()):
            self._paused = True
            self._wire.pause()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._wire.resume()

    def resumed(self, now: float) -> None:
        self._protocol.restart_clock(now)
        if self._rest is not None and not self._wire.is_blocked():
            rest, self._rest = self._rest, None
            self._take(*rest)
        self._continue()

    @property
    def buffered(self) -> int:
        return self._protocol.buffered + (sum(map(len, self._input)) if self._input else 0)

    # events

    def _handle(self, event: tmq.Event) -> None:
        if self._unsettled and not isinstance(event, tmq.Refused):
            self._settle()  # the next complete valid request settles all earlier replies (6.1)
        match event:
            case tmq.Enqueue():
                self._enqueue(event)
            case tmq.Dequeue():
                self._dequeue(event)
            case tmq.Select():
                self._select(event)
            case tmq.Open():
                self._open(event)
            case tmq.Close():
                self._close_handle(event)
            case tmq.Create():
                self._on_queues(Operation.CREATE, decode_name(event.name))
            case tmq.Delete():
                self._on_queues(Operation.DELETE, decode_name(event.name))
            case tmq.TransactionStart():
                self._start_transaction()
            case tmq.TransactionEnd():
                self._end_transaction()
            case tmq.TransactionAbort():
                self._abort_transaction()
            case tmq.Refused():
                self._refuse(event)
            case _:
                assert_never(event)

    def _answer(self, operation: Operation, ok: bool) -> None:
        self._reply(self._expect(), tmq.encode_status(self._dialect, operation, ok), operation, int(ok), 1)

    def _reply(self, slot: Slot, reply: bytes, operation: Operation, good: int, total: int) -> None:
        slot.reply = reply
        self._service.count(operation._value_, good, total, self._wire.loop_time() - slot.asked)
        if known := self._answers.take_known():
            self._wire.write(known)

    def _expect(self) -> Slot:
        return self._answers.expect(self._wire.loop_time())

    def _refuse(self, event: tmq.Refused) -> None:
        self._wire.refuse(event.reason, event.operation.value)
        self._reply(self._expect(), tmq.encode_failure(self._dialect, event.operation), event.operation, 0, 1)
        if event.close:
            self._closing = True

    # ENQ

    def _enqueue(self, event: tmq.Enqueue) -> None:
        handle = self._handles.get(event.mqid)
        run = event.records
        slot = self._expect()
        if handle is None:
            self._wire.refuse("mqid_not_open")
            self._answer_run(slot, 0, len(run))
        elif self._transaction is not None:
            fits = self._transaction.put(handle.queue, run)
            if fits < len(run):
                self._wire.refuse(self._transaction.why_not(handle.queue))
            self._answer_run(slot, fits, len(run))
        else:
            pipe = handle.pipe
            pipe.publish(self._source, handle.queue, run, self._origin, partial(self._enqueued, slot, run))
            if pipe.waiting.congested and not self._congested:
                self._congested = True
                pipe.waiting.when_clear(self._uncongested)

    def _uncongested(self) -> None:
        self._congested = False
        self._continue()

    def _enqueued(self, slot: Slot, run: list[bytes], outcome: Refusals | StoreError) -> None:
        if not outcome:
            self._answer_run(slot, len(run), len(run))
        elif isinstance(outcome, OutcomeUnknown):
            self._unknown(outcome)
        elif isinstance(outcome, StoreError):
            self._wire.refuse(outcome.reason, str(outcome))
            self._answer_run(slot, 0, len(run))
        else:
            self._wire.refuse(outcome[0][1].reason, str(outcome[0][1]))
            ok, failed = ENQ_STATUS[self._dialect]
            bad = {index for index, _ in outcome}
            reply = b"".join(failed if index in bad else ok for index in range(len(run)))
            self._reply(slot, reply, Operation.ENQ, len(run) - len(bad), len(run))
        if self._paused or self._eof or self._closing:
            self._continue()

    def _answer_run(self, slot: Slot, good: int, total: int) -> None:
        """The first `good` of a run are well, the others are not."""
        ok, failed = ENQ_STATUS[self._dialect]
        self._reply(slot, ok * good + failed * (total - good), Operation.ENQ, good, total)

    # DNQ

    def _dequeue(self, event: tmq.Dequeue) -> None:
        handle = self._handles.get(event.mqid)
        run = DequeueRun(self._expect(), event.count)
        if handle is None:
            self._wire.refuse("mqid_not_open")
        else:
            run.allowed = self._may_take(handle.queue, event.count)
            if run.allowed < event.count:
                transaction = self._transaction
                self._wire.refuse(transaction.why_not(handle.queue) if transaction else "too_many_unsettled")
        self._busy = True
        self._take(handle.queue if handle is not None else None, run)

    def _may_take(self, queue: Queue, count: int) -> int:
        if self._transaction is not None:
            return self._transaction.admits(queue, count)
        return min(count, self._service.settings.max_unsettled - self._unsettled_count)

    def _take(self, queue: Queue | None, run: DequeueRun) -> None:
        """Asks for what may be taken; answers the run if that is nothing."""
        if queue is None or run.allowed == 0:
            self._reply(run.slot, tmq.EMPTY * run.asked, Operation.DNQ, 0, run.asked)
            self._free()
        else:
            take = self._service.pipe(queue).take
            take(self._source, queue, run.allowed, lambda got, more: self._taken(queue, run, got, more))

    def _taken(self, queue: Queue, run: DequeueRun, got: list[Delivery] | StoreError, more: bool) -> None:
        if isinstance(got, OutcomeUnknown):
            self._unknown(got)
            return
        if isinstance(got, StoreError):
            self._wire.refuse(got.reason, str(got))
            got, more = [], False
        kept = self._keep(queue, got)
        if self._gone:
            return  # the messages went back (6.2)
        count = sum(d.count for d in kept)
        # one call carries only so many octets, for all who ask together: perhaps none for this one yet
        goes_on = more and len(kept) == len(got) and count < run.allowed
        if self._transaction is not None:
            self._transaction.count(queue, count if goes_on or len(kept) < len(got) else run.allowed)
        answered = count if goes_on else run.asked
        reply = b"".join(records.plain(d.blob, d.count) for d in kept) + tmq.EMPTY * (answered - count)
        for d in kept:
            d.drop_bodies()  # a lease may last, and there may be a thousand large ones
        self._reply(run.slot, reply, Operation.DNQ, count, answered)
        if not goes_on:
            self._free()
            return
        rest = DequeueRun(self._expect(), run.asked - count)
        rest.allowed = run.allowed - count
        if self._wire.is_blocked():
            self._rest = (queue, rest)  # until the client has read some of it (7.3)
            self._leave_it_to_the_output()
        else:
            self._take(queue, rest)

    def _keep(self, queue: Queue, got: list[Delivery]) -> list[Delivery]:
        """Of what was taken, that which this connection may have; the leases are its own now. The rest goes back."""
        if queue.at_most_once or not got:
            return got
        if self._gone:
            kept, beyond = [], got
        elif self._transaction is None:
            kept, beyond = got, []
            self._unsettled += got
            self._unsettled_count += sum(d.count for d in got)
        else:
            kept, beyond = self._transaction.took(queue, got)
        if beyond:
            self._service.pipe(queue).give_back(beyond)
            if self._transaction is not None:
                self._wire.refuse(self._transaction.why_not(queue))
        return kept

    def _settle(self) -> None:
        """Settling is not part of the sequence of requests: it may go with any call, as soon as possible."""
        by_domain: dict[str, list[Delivery]] = {}
        for d in self._unsettled:
            by_domain.setdefault(d.queue.domain, []).append(d)
        for deliveries in by_domain.values():
            self._service.pipe(deliveries[0].queue).settle(Source(), deliveries, self._settled)
        self._unsettled, self._unsettled_count = [], 0

    def _settled(self, error: StoreError | None) -> None:
        """A client must not go on as if a message had been its own that others are given too (6.1)."""
        if error is None or self._gone or isinstance(error, QueueUnknown):
            return  # with its queue a message is gone for everybody
        if not self._closing:
            self._wire.refuse(error.reason, str(error))
            self._closing = True
            self._wire.abort()

    def _give_back(self, deliveries: list[Delivery], *, failed: bool, error: str = "") -> None:
        for d in deliveries:
            self._service.pipe(d.queue).release(Source(), [d], failed=failed, error=error)

    def _free(self) -> None:
        self._busy = False
        self._continue()

    # SELECT and whole queues

    def _select(self, event: tmq.Select) -> None:
        handle = self._handles.get(event.mqid)
        slot = self._expect()
        expired = self._transaction is not None and self._transaction.expired
        if handle is None or expired:
            self._wire.refuse("transaction_expired" if expired else "mqid_not_open")
            self._counted(slot, event.count, tmq.UNUSABLE)
            return
        self._busy = True

        def counted(number: int | StoreError) -> None:
            if isinstance(number, OutcomeUnknown):
                self._unknown(number)
                return
            if isinstance(number, StoreError):
                self._wire.refuse(number.reason, str(number))
                number = tmq.UNUSABLE
            self._counted(slot, event.count, number)
            self._free()

        handle.pipe.count(self._source, handle.queue, counted)

    def _counted(self, slot: Slot, times: int, number: int) -> None:
        good = times if number != tmq.UNUSABLE else 0
        self._reply(slot, tmq.encode_count(self._dialect, number) * times, Operation.SELECT, good, times)

    def _open(self, event: tmq.Open) -> None:
        slot = self._expect()
        self._busy = True

        def opened(queue: Queue | StoreError) -> None:
            mqid = tmq.mqid_of(event.name)
            full = len(self._handles) >= self._service.settings.max_open_queues and mqid not in self._handles
            if isinstance(queue, StoreError) or full:
                self._wire.refuse(queue.reason if isinstance(queue, StoreError) else "too_many_open")
                self._reply(slot, tmq.nil_mqid(self._dialect), Operation.OPEN, 0, 1)
            else:
                self._handles[mqid] = Handle(queue, self._service.pipe(queue))
                self._reply(slot, mqid, Operation.OPEN, 1, 1)
            self._free()

        self._service.ask(self._service.open(decode_name(event.name)), opened)

    def _close_handle(self, event: tmq.Close) -> None:
        is_open = self._handles.pop(event.mqid, None) is not None
        if not is_open:
            self._wire.refuse("mqid_not_open")
        self._answer(Operation.CLOSE, is_open)

    def _on_queues(self, operation: Operation, name: str) -> None:
        slot = self._expect()
        self._busy = True
        work = self._service.create if operation is Operation.CREATE else self._service.delete

        def done(result: bool | StoreError) -> None:
            if isinstance(result, OutcomeUnknown):
                self._unknown(result)
                return
            ok = result is True
            if not ok:
                reason = result.reason if isinstance(result, StoreError) else FORBIDDEN[operation]
                self._wire.refuse(reason, operation.value)
            self._reply(slot, tmq.encode_status(self._dialect, operation, ok), operation, int(ok), 1)
            self._free()

        self._service.ask(work(name), done)

    # transactions

    def _start_transaction(self) -> None:
        free = self._transaction is None and not self._drained
        if free:
            self._transaction = Transaction(
                self._service.settings.transaction, self._wire.loop_time(), self._origin
            )
            self._wire.reschedule()
        else:
            self._wire.refuse("draining" if self._drained else "in_transaction")
        self._answer(Operation.TS, free)

    def _end_transaction(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None or transaction.expired:
            self._wire.refuse("no_transaction" if transaction is None else "transaction_expired")
            self._answer(Operation.TE, False)
            return
        parts = transaction.parts()
        if not parts:
            self._answer(Operation.TE, True)
            return
        slot = self._expect()
        self._busy = True

        def done(error: StoreError | None) -> None:
            if isinstance(error, OutcomeUnknown):
                self._unknown(error)  # the store gives the leases back if it turns out that nothing was done
                return
            if error is not None:
                self._wire.refuse(error.reason, str(error))
                self._give_back(transaction.leased(), failed=False)  # TE = 1 has the effect of TA (5.3)
            self._reply(
                slot,
                tmq.encode_status(self._dialect, Operation.TE, error is None),
                Operation.TE,
                not error,
                1,
            )
            self._free()

        self._service.pipe(parts[0].queue).commit(self._source, transaction.identifier, parts, done)

    def _abort_transaction(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            self._wire.refuse("no_transaction")
        leased = transaction.leased() if transaction is not None else []
        if not leased:
            self._answer(Operation.TA, transaction is not None)
            return
        slot = self._expect()
        self._busy = True
        pipe = self._service.pipe(leased[0].queue)

        def done(_: StoreError | None) -> None:
            if slot.reply is None:
                self._reply(slot, tmq.encode_status(self._dialect, Operation.TA, True), Operation.TA, 1, 1)
                self._free()

        # A consumer that aborts counts as a failed delivery: else one poisonous message would go round for ever.
        pipe.release(
            self._source, leased, failed=True, error="the consumer aborted its transaction", done=done
        )
        if pipe.trouble is not None:
            done(None)  # they go back as soon as the store is there again

    # time

    def deadline(self) -> float | None:
        if self._linger is not None:
            return self._linger.until
        due = self._protocol.deadline()
        limit = self._transaction.deadline if self._transaction is not None else None
        if due is None or limit is None:
            return limit if due is None else due
        return min(due, limit)

    def on_time(self, now: float) -> None:
        if self._linger is not None:
            self._linger_over(self._linger, now)
            return
        transaction = self._transaction
        if transaction is not None and transaction.deadline is not None and now >= transaction.deadline:
            self._wire.refuse("transaction_time_limit")
            self._give_back(transaction.expire(), failed=True, error="the transaction's time limit was over")
        due = self._protocol.deadline()
        if due is not None and now >= due:
            self._pump(self._protocol.on_time(now))

    # the end

    def eof(self, now: float) -> None:
        self._eof = True
        self._continue()  # the rest of the input comes first

    def _end_if_done(self) -> None:
        """Closes once everything owed has been answered, if it is to be closed."""
        if (
            self._gone
            or self._pumping
            or self._linger is not None
            or not (self._closing or self._eof_parsed or self._drained)
        ):
            return
        if len(self._answers) or (not self._closing and self._is_waiting()):
            return
        settles = self._eof_parsed and not self._closing
        if self._violation is not None:
            violation, self._violation = self._violation, None
            self._wire.refuse(violation.reason, violation.detail)
            settles = self._eof_parsed  # a FIN is one, also where it cuts a request short (3.3)
        if settles and self._unsettled:
            now = self._wire.loop_time()
            self._linger = Linger(now + self._service.settings.eof_grace_s, now, self._wire.unsent())
            self._wire.reschedule()
            return
        self._wire.close()

    def _linger_over(self, linger: Linger, now: float) -> None:
        """A FIN settles once all replies are acknowledged by the peer's TCP and no reset has followed (6.1)."""
        settings = self._service.settings
        unsent = 0 if self._wire.is_reset() else self._wire.unsent()
        if unsent < linger.unsent:
            linger.unsent, linger.moved = unsent, now
        if unsent and now - linger.moved >= settings.request_timeout_s:
            self._wire.refuse("replies_unread")  # nor does the kit watch what fits into its buffers
            self._wire.abort()
        elif unsent:
            linger.until = now + max(settings.eof_grace_s, 0.1)
        else:
            self._linger = None
            if not self._wire.is_reset():
                self._settle()
            self._closing = True
            self._wire.close()

    def _unknown(self, error: StoreError) -> None:
        """The outcome cannot be learnt: closed unanswered, for any answer might be a lie (7.2)."""
        self._wire.refuse(error.reason, str(error))
        self._closing = True
        self._busy = False
        self._wire.close()

    def drain(self) -> None:
        self._drained = True
        if self._transaction is not None:
            self._give_back(self._transaction.expire(), failed=False)
        self._end_if_done()  # or later: what has come in is answered, then it is closed

    def lost(self, reset: bool) -> None:
        self._gone = True
        leased, self._unsettled = self._unsettled, []
        if self._transaction is not None:
            leased += self._transaction.expire()
            self._transaction = None
        if leased:
            self._give_back(
                leased, failed=not self._drained, error="" if self._drained else "the connection was lost"
            )
