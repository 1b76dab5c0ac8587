"""Interpret a history: transactions, messages and deliveries.

The outcome of an unanswered transaction is inferred from its messages: if one of its puts was ever seen, the whole
transaction must have taken effect; if none was, no part of it may have (tmq.md 5.3).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from protos.tmq import Operation
from tests.faults.history import Connection, Ended, Fault, History, Request, Trouble
from tests.faults.plan import REPLY_TIMEOUT_S, Kind


class Outcome(enum.Enum):
    """The outcome of a request, as answered to the client."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


class End(enum.Enum):
    """The end of a delivery."""

    SETTLED = "settled"  # the message must never be seen again
    RETURNED = "returned"  # the message must be redelivered
    UNKNOWN = "unknown"  # both are allowed


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    connection: Connection
    began: int  # index of TS in the connection
    ended: int = -1  # index of TE or TA; -1: neither was sent
    outcome: Outcome = Outcome.NOT_DONE
    judged: bool = False  # its outcome was inferred, not answered
    puts: list[Message] = field(default_factory=list)
    taken: list[Delivery] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Message:
    body: bytes
    queue: str
    connection: Connection
    asked: int  # index of its ENQ
    outcome: Outcome
    transaction: Transaction | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    is_dead: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """The message's place among its connection's puts into this queue: at its TE, or at its own request."""
        own = self.transaction
        return (own.ended if own is not None else self.asked, self.asked)

    @property
    def was_seen(self) -> bool:
        return bool(self.deliveries) or self.is_dead

    @property
    def is_stored(self) -> bool:
        return self.outcome is Outcome.DONE or (self.outcome is Outcome.UNKNOWN and self.was_seen)


@dataclass(slots=True, eq=False, repr=False)
class Delivery:
    body: bytes
    queue: str
    connection: Connection
    asked: int  # index of its DNQ
    sent: float
    answered: float
    end: End = End.UNKNOWN
    transaction: Transaction | None = None

    def is_after(self, other: Delivery) -> bool:
        """Return whether this delivery is certainly the later one; overlapping deliveries have no known order."""
        return self.sent > other.answered


@dataclass(slots=True, repr=False)
class Reading:
    messages: dict[bytes, Message] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    invented: list[Delivery] = field(default_factory=list)  # bodies that no client put into this queue
    invented_dead: list[tuple[str, bytes]] = field(default_factory=list)
    # by queue: DNQs that may have leased a message unseen
    unseen_takes: dict[str, list[Request]] = field(default_factory=dict)

    def of_queue(self, queue: str) -> Iterator[Message]:
        return (message for message in self.messages.values() if message.queue == queue)


def read(
    history: History,
    dead: dict[str, list[bytes]],
    faults: list[Fault] | None = None,
    troubles: list[Trouble] | None = None,
) -> Reading:
    """Interpret a history; `dead` has the bodies of dead letters by queue."""
    reading = Reading()
    stops = [fault for fault in faults or [] if fault.kind == Kind.TERM.value]
    for connection in history.connections:
        _ConnectionReader(reading, connection, stops).read()
    _attach(reading, dead)
    quiet = Quiet(faults or [], troubles or [])
    for delivery in reading.deliveries:
        if delivery.transaction is None:
            delivery.end = _end_of_plain(delivery, quiet)
    for transaction in sorted(reading.transactions, key=lambda found: found.outcome is Outcome.UNKNOWN):
        _judge(reading, transaction)  # answered ones first: the others are inferred from them
    return reading


class _ConnectionReader:
    """Reader of one connection's requests, inside and outside transactions (tmq.md 5.1)."""

    def __init__(self, reading: Reading, connection: Connection, stops: list[Fault]) -> None:
        """Keep the faults in `stops`, SIGTERMs of edges, that concern this connection's edge."""
        self._reading = reading
        self._connection = connection
        self._stops = [fault for fault in stops if fault.target == f"edge {connection.edge}"]
        self._transaction: Transaction | None = None

    def read(self) -> None:
        for index, request in enumerate(self._connection.requests):
            match request.operation:
                case Operation.ENQ:
                    self._put(index, request)
                case Operation.DNQ:
                    self._take(index, request)
                case Operation.TS if request.ok:
                    self._transaction = Transaction(self._connection, index)
                    self._reading.transactions.append(self._transaction)
                case Operation.TE | Operation.TA if self._transaction is not None:
                    self._end(self._transaction, index, request)

    def _put(self, index: int, request: Request) -> None:
        outcome = _outcome(request)
        own = self._transaction
        message = Message(request.body, request.queue, self._connection, index, outcome, own)
        self._reading.messages[request.body] = message
        if own is not None and outcome is not Outcome.NOT_DONE:
            own.puts.append(message)

    def _take(self, index: int, request: Request) -> None:
        if _may_be_unseen(request) or (self._transaction is not None and self._was_given_up(request)):
            self._reading.unseen_takes.setdefault(request.queue, []).append(request)
        if not request.ok or request.answered is None:
            return
        found = Delivery(request.body, request.queue, self._connection, index, request.sent, request.answered)
        found.transaction = self._transaction
        if self._transaction is not None:
            self._transaction.taken.append(found)
        self._reading.deliveries.append(found)

    def _was_given_up(self, request: Request) -> bool:
        """Return whether a stopping edge answered "none" and returned a message just leased for it (tmq.md 5.4)."""
        answered = request.answered
        return any(
            not request.ok
            and answered is not None
            and stop.began <= answered
            and (stop.ended is None or request.sent <= stop.ended)
            for stop in self._stops
        )

    def _end(self, transaction: Transaction, index: int, request: Request) -> None:
        transaction.ended = index
        if request.operation is Operation.TE:
            transaction.outcome = _outcome(request)
        self._transaction = None


def _may_be_unseen(request: Request) -> bool:
    """Return whether a DNQ may have leased a message unseen.

    Either it has no answer, or its "none" came so late that it may answer a retry, made after the first lease expired.
    """
    if request.answered is None:
        return request.sent > 0
    return not request.ok and request.answered - request.sent > REPLY_TIMEOUT_S


def _outcome(request: Request) -> Outcome:
    if request.answered is None:
        return Outcome.UNKNOWN if request.sent else Outcome.NOT_DONE
    return Outcome.DONE if request.ok else Outcome.NOT_DONE


def _attach(reading: Reading, dead: dict[str, list[bytes]]) -> None:
    for delivery in reading.deliveries:
        message = reading.messages.get(delivery.body)
        if message is None or message.queue != delivery.queue:
            reading.invented.append(delivery)
        else:
            message.deliveries.append(delivery)
    for queue, bodies in dead.items():
        for body in bodies:
            message = reading.messages.get(body)
            if message is None or message.queue != queue:
                reading.invented_dead.append((queue, body))
            else:
                message.is_dead = True


def _judge(reading: Reading, transaction: Transaction) -> None:
    """Infer the outcome of a transaction if necessary, and apply it to its messages and deliveries."""
    if transaction.outcome is Outcome.UNKNOWN:
        transaction.judged = True
        transaction.outcome = Outcome.DONE if _seems_done(reading, transaction) else Outcome.NOT_DONE
    for message in transaction.puts:
        message.outcome = transaction.outcome
    done = transaction.outcome is Outcome.DONE
    for delivery in transaction.taken:
        delivery.end = End.SETTLED if done else End.RETURNED


def _seems_done(reading: Reading, transaction: Transaction) -> bool:
    if transaction.puts:
        return any(message.was_seen for message in transaction.puts)
    return not any(_came_again(reading, delivery) for delivery in transaction.taken)


def _came_again(reading: Reading, delivery: Delivery) -> bool:
    """Return whether the message was delivered again, or may have been by a settled delivery that overlaps.

    A draining edge returns a message while the client is still reading the answer that delivered it.
    """
    message = reading.messages.get(delivery.body)
    if message is None:
        return False
    others = (other for other in message.deliveries if other is not delivery)
    return message.is_dead or any(
        other.is_after(delivery) or (other.end is End.SETTLED and not delivery.is_after(other))
        for other in others
    )


# Outside transactions (tmq.md 6.1)

# The store itself answers these, so success proves that all earlier requests of the connection are done.
PROOFS = frozenset((Operation.ENQ, Operation.DNQ, Operation.SELECT, Operation.TE))


class Quiet:
    """Times since which edges have been free of faults.

    Connections of a killed process end like any others, but a FIN sent by its kernel settles nothing.
    """

    def __init__(self, faults: list[Fault], troubles: list[Trouble]) -> None:
        self._last: dict[int, float] = {}
        for fault in faults:
            if fault.target.startswith("edge"):
                self._note(int(fault.target.split()[1]), fault.ended or fault.began)
        for trouble in troubles:
            if trouble.action == "session_lost":
                self._note(trouble.edge, trouble.at)

    def _note(self, edge: int, at: float) -> None:
        self._last[edge] = max(self._last.get(edge, 0.0), at)

    def since(self, edge: int, at: float) -> bool:
        return self._last.get(edge, 0.0) < at


def _end_of_plain(delivery: Delivery, quiet: Quiet) -> End:
    """Return how a delivery outside a transaction ended.

    A later request settles it; so does a FIN, if the edge kept running.
    """
    connection = delivery.connection
    later = [request for request in connection.requests[delivery.asked + 1 :] if request.sent]
    if any(request.ok and request.operation in PROOFS for request in _to_the_store(later)):
        return End.SETTLED
    if connection.ended is Ended.FIN and quiet.since(connection.edge, delivery.sent):
        return End.SETTLED
    if not later and connection.ended in (Ended.RESET, Ended.BROKEN):
        return End.RETURNED
    return End.UNKNOWN


def _to_the_store(requests: list[Request]) -> Iterator[Request]:
    """Yield the requests that reach the store.

    The edge itself answers ENQs inside a transaction, and the end of a transaction without any.
    """
    inside = holds = False
    for request in requests:
        match request.operation:
            case Operation.TS if request.ok:
                inside, holds = True, False
            case Operation.ENQ if inside:
                holds = holds or request.ok
            case Operation.TE | Operation.TA:
                inside = False
                if holds:
                    yield request
            case _:
                yield request
