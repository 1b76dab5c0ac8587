"""What may be asked of one call to the store, and how the answer is told: each verb's operation as a value."""

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
TAKE_BYTES = 1 << 20  # of bodies that one call's takes may answer, or one message that is larger


Refusals = list[tuple[int, StoreError]]  # (index in the run, why)
Published = Callable[[Refusals | StoreError], None]  # [] = all are stored
Taken = Callable[[list[Delivery] | StoreError, bool], None]  # True: there was more than one call may carry
Counted = Callable[[int | StoreError], None]
Done = Callable[[StoreError | None], None]
Placed = Callable[[str | StoreError], None]  # a place in the log: "<era>-<messages up to there>"


class Phase(IntEnum):
    """The order within a round."""

    SETTLE = 0
    PUBLISH = 1
    TAKE = 2
    COUNT = 3
    COMMIT = 4


class Source:
    """Whoever wants its own requests done in sequence: a connection.

    client: on whose behalf. Every verb that puts in or takes out asks the queue whether it lets him: so no edge can
    forget it, and a document that changes counts from the next request on.
    """

    __slots__ = ("_admitted", "begins_traces", "call", "client", "phase", "queue", "round", "stopped")

    def __init__(self, client: Client, *, begins_traces: bool = True) -> None:
        """begins_traces: False for what is on its way through us, and not put in by anybody, and where `Hops` have
        decided. A message alone that brings a context goes on all the same."""
        self.client = client
        self.begins_traces = begins_traces
        self._admitted: Admission | None = None  # that has let him in: the last one
        self.call: object = None  # the call that its last request went into
        self.round = 0
        self.phase = Phase.SETTLE
        self.queue: object = None  # that it last wanted something put into in order
        self.stopped = False  # some of that was refused: nothing behind it is, ever

    def behind(self) -> Source:
        """Another one: what it asks for next comes behind all that this one has asked for up to now."""
        other = Source(self.client, begins_traces=self.begins_traces)
        other.call, other.round, other.phase = self.call, self.round, self.phase
        return other

    def refusal(self, queue: Queue) -> AccessDenied | None:
        """Why the queue does not let the client, or None."""
        asked = queue.admission
        if asked is None or asked is self._admitted:
            return None
        refusal = queue.refusal(self.client)
        if refusal is None:
            self._admitted = asked
        return refusal


@dataclass(slots=True)
class Publish:
    records: list[bytes]
    origin: str
    holder: str
    done: Published
    in_order: Source | None = None  # whose later ones end with it


@dataclass(slots=True)
class Take:
    want: int
    done: Taken


@dataclass(slots=True)
class Return:
    delivery: Delivery
    failed: bool
    to_end: bool
    error: str
    done: Done | None


@dataclass(slots=True)
class Reject:
    delivery: Delivery
    reason: str
    error: str
    done: Done | None


@dataclass(slots=True)
class Note:
    delivery: Delivery
    text: str
    done: Done


@dataclass(slots=True)
class Bury:
    record: bytes
    origin: str
    reason: str
    error: str
    done: Done


@dataclass(slots=True)
class CommitPart:
    """One queue's share of a commit."""

    queue: Queue
    deliveries: list[Delivery]
    records: list[bytes]
    origin: str
    holder: str = ""  # as in `publish`


@dataclass(slots=True)
class Commit:
    identifier: str
    parts: list[CommitPart]
    keep_ms: int
    digest: str  # of what it does, '' if nobody asks whether another one had its identifier
    done: Once


@dataclass(slots=True)
class IdempotentPublish:
    """One record, alone in its entry, put in once under its identity. A `TransactionId` makes a `Commit` instead."""

    identity: JournalNumber | DeliveryToken | RequestId
    queue: Queue
    record: bytes
    origin: str
    reason: str  # why it goes to the dead letters instead, '' if it does not; of a journal only
    error: str
    done: Once


@dataclass(slots=True)
class Send:
    """Lines for the log: `count` of them, or one and the queues that want a copy of it."""

    block: bytes
    count: int
    copies: list[tuple[Queue, bytes]]  # queue, record
    origin: str
    bindings: str  # the version of the bindings that the copies were made by
    done: Done


@dataclass(slots=True)
class Work:
    """What one round does to one queue."""

    queue: Queue
    acks: dict[tuple[bytes, bytes], list[int]] = field(
        default_factory=dict
    )  # (lot, entry) -> [size, mask, bytes]
    acked: list[tuple[list[Delivery], Done]] = field(default_factory=list)  # who asked, and for which of them
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
    works: dict[str, Work] = field(default_factory=dict)
    commits: list[OnceOnly] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    heads: list[Placed] = field(default_factory=list)


def merge(deliveries: list[Delivery]) -> list[tuple[bytes, bytes, int, int, int]]:
    """Acknowledgements: (lot, entry, messages in the entry, mask, octets of bodies). What is there twice stays so."""
    acks: dict[tuple[bytes, bytes], list[int]] = {}
    twice = [d for d in deliveries if not add_ack(acks, d)]
    merged = [(lot, entry, size, mask, count) for (lot, entry), (size, mask, count) in acks.items()]
    return merged + [(d.lot, d.entry, d.size, d.mask, d.body_bytes) for d in twice]


def add_ack(acks: dict[tuple[bytes, bytes], list[int]], d: Delivery) -> bool:
    """False if some of these messages are among them already: nothing was added."""
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
    """One answer for several operations: called `number` times, it tells the first error, or None."""
    if done is None or number == 1:
        return done
    errors: list[StoreError | None] = []

    def one(error: StoreError | None) -> None:
        errors.append(error)
        if len(errors) == number:
            done(next((e for e in errors if e is not None), None))

    return one
