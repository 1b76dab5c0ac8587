"""Define the operations that one call to the store may carry, and the callbacks for their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from services.store.model.admission import Admission
from services.store.model.client import Client
from services.store.model.delivery import Delivery
from services.store.model.errors import AccessDenied, StoreError
from services.store.model.identities import DeliveryToken, JournalNumber, RequestId
from services.store.model.queues import Queue
from services.store.model.requests import Once, Request

MAX_MESSAGES = 1000  # published or taken by one call (Lua unpacks 8,000 values at the most)
MAX_BYTES = 1 << 20  # of records in one call; a single larger message goes alone
MAX_QUEUES = 128
TAKE_BYTES = 1 << 20  # of bodies in the reply of one call's takes, unless a single message is larger

Refusals = list[tuple[int, StoreError]]  # (index in the run, why)
Published = Callable[[Refusals | StoreError], None]  # [] = all are stored
Taken = Callable[[list[Delivery] | StoreError, bool], None]  # True: more messages are available
Counted = Callable[[int | StoreError], None]
Done = Callable[[StoreError | None], None]
Placed = Callable[[str | StoreError], None]  # a place in the log: "<era>-<messages up to there>"


class Phase(IntEnum):
    """The order of operations within a round."""

    SETTLE = 0
    PUBLISH = 1
    TAKE = 2
    COUNT = 3
    COMMIT = 4


class Source:
    """A source whose requests are executed in order: a connection.

    Every put and take checks that the queue admits its client, so no edge can omit the check, and a changed document
    applies from the next request on.
    """

    __slots__ = ("_admitted", "begins_traces", "call", "client", "phase", "queue", "round", "stopped")

    def __init__(self, client: Client, *, begins_traces: bool = True) -> None:
        """Make a source without requests.

        Args:
            client: On whose behalf.
            begins_traces: False for forwarded messages, and where `TracePropagation` has sampled already. A single
                message that carries a trace context is traced in any case.
        """
        self.client = client  # on whose behalf
        self.begins_traces = begins_traces  # False: messages without a trace context are not traced
        self._admitted: Admission | None = None  # the last check that admitted the client
        self.call: object = None  # the call that carries its last request
        self.round = 0  # of its last request in that call
        self.phase = Phase.SETTLE  # of its last request in that round
        self.queue: object = None  # the queue of its last ordered put
        self.stopped = False  # an ordered put was refused: all later ones are refused

    def behind(self) -> Source:
        """Return a source whose requests are executed after all requests of this one so far."""
        other = Source(self.client, begins_traces=self.begins_traces)
        other.call, other.round, other.phase = self.call, self.round, self.phase
        return other

    def refusal(self, queue: Queue) -> AccessDenied | None:
        """Return why the queue does not admit the client, or None."""
        admission = queue.admission
        if admission is None or admission is self._admitted:
            return None
        refusal = queue.refusal(self.client)
        if refusal is None:
            self._admitted = admission
        return refusal


@dataclass(slots=True)
class Publish:
    """Put records into a queue."""

    records: list[bytes]
    origin: str
    holder: str
    done: Published
    in_order: Source | None = None  # whose later puts are refused if this one is


@dataclass(slots=True)
class Take:
    """Lease up to `want` messages."""

    want: int
    done: Taken


@dataclass(slots=True)
class Return:
    """Return a delivery to its place, or to the end."""

    delivery: Delivery
    failed: bool
    to_end: bool
    error: str
    done: Done | None


@dataclass(slots=True)
class Reject:
    """Move a delivery to the dead letters."""

    delivery: Delivery
    reason: str
    error: str
    done: Done | None


@dataclass(slots=True)
class Note:
    """Attach a note to a delivery."""

    delivery: Delivery
    text: str
    done: Done


@dataclass(slots=True)
class Bury:
    """Put a record directly into the dead letters."""

    record: bytes
    origin: str
    reason: str
    error: str
    done: Done


@dataclass(slots=True)
class CommitPart:
    """One queue's share of a commit."""

    queue: Queue  # to settle in and to publish to
    deliveries: list[Delivery]  # to acknowledge
    records: list[bytes]  # to publish
    origin: str  # of the records
    holder: str = ""  # as in `Publish`


@dataclass(slots=True)
class Commit:
    """Change several queues in one step, once under its identifier."""

    identifier: str
    parts: list[CommitPart]
    keep_ms: int
    digest: str  # of its contents; '' to skip the check whether the identifier was used for others
    done: Once


@dataclass(slots=True)
class IdempotentPublish:
    """Put one record, alone in its entry, once under its identity; a `TransactionId` becomes a `Commit` instead."""

    identity: JournalNumber | DeliveryToken | RequestId
    queue: Queue
    record: bytes
    origin: str
    reason: str  # puts it into the dead letters, if not ''; for a journal only
    error: str
    done: Once


@dataclass(slots=True)
class Send:
    """Append `count` lines to the log, or one line with copies for the queues that subscribe."""

    block: bytes
    count: int
    copies: list[tuple[Queue, bytes]]  # queue, record
    origin: str
    bindings: str  # version of the bindings that determined the copies
    done: Done


@dataclass(slots=True)
class Work:
    """The operations of one round on one queue."""

    queue: Queue
    # (lot, entry) -> [size, mask, bytes]
    acks: dict[tuple[bytes, bytes], list[int]] = field(default_factory=dict)
    acked: list[tuple[list[Delivery], Done]] = field(default_factory=list)  # requests with their deliveries
    returns: list[Return] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    buries: list[Bury] = field(default_factory=list)
    publishes: list[Publish] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    counts: list[Counted] = field(default_factory=list)


OnceOnly = Commit | IdempotentPublish | Request


@dataclass(slots=True)
class Round:
    """The operations of one round, which are executed in the order of `Phase`."""

    works: dict[str, Work] = field(default_factory=dict)
    commits: list[OnceOnly] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    heads: list[Placed] = field(default_factory=list)


def merge(deliveries: list[Delivery]) -> list[tuple[bytes, bytes, int, int, int]]:
    """Merge deliveries into acknowledgements: (lot, entry, messages in the entry, mask, octets of bodies).

    Duplicates are kept, so that the store refuses them.
    """
    acks: dict[tuple[bytes, bytes], list[int]] = {}
    twice = [d for d in deliveries if not add_ack(acks, d)]
    merged = [(lot, entry, size, mask, count) for (lot, entry), (size, mask, count) in acks.items()]
    return merged + [(d.lot, d.entry, d.size, d.mask, d.body_bytes) for d in twice]


def add_ack(acks: dict[tuple[bytes, bytes], list[int]], d: Delivery) -> bool:
    """Add a delivery and return True; return False if it overlaps those added before."""
    found = acks.get((d.lot, d.entry))
    if found is None:
        acks[d.lot, d.entry] = [d.size, d.mask, d.body_bytes]
    elif found[1] & d.mask:
        return False
    else:
        found[1] |= d.mask
        found[2] += d.body_bytes
    return True


def join_done(done: Done | None, number: int) -> Done | None:
    """Combine `number` results: return a callback that passes the first error, or None, to `done` at its last call."""
    if done is None or number == 1:
        return done
    errors: list[StoreError | None] = []

    def one(error: StoreError | None) -> None:
        errors.append(error)
        if len(errors) == number:
            done(next((e for e in errors if e is not None), None))

    return one
