"""Define the requests of a ring, each under an id chosen by its sender, and their outcomes (ring.md 5.4).

Ids have 16 octets. The store remembers the outcome of each id, so a repeated request gets the same answer from any
process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.queues import Queue


class Outcome(Enum):
    """The result of an idempotent request."""

    STORED = "stored"  # now
    AGAIN = "again"  # by an earlier request


Once = Callable[[Outcome | StoreError], None]


class Nothing(Enum):
    """Why a pull returns no message."""

    EMPTY = "empty"  # there was none for it
    EXPIRED = "expired"  # there was one, which has been settled since or is back in its queue
    RETRY = "retry"  # all candidates had expired: the verb repeats the call


class Settlement(Enum):
    """The result of settling a pull."""

    SETTLED = "settled"  # now
    AGAIN = "again"  # by an earlier request
    EXPIRED = "expired"  # too late: the message went back to its queue
    UNKNOWN = "unknown"  # nothing was leased under this id here


@dataclass(frozen=True, slots=True)
class Pulled:
    """The message that is leased under the id of a pull."""

    delivery: Delivery
    # a repeat: another process may hold the lease, so settle it by the id and never release it here
    again: bool


@dataclass(frozen=True, slots=True)
class Held:
    """The session that holds the lease: the verb repeats the call with the key of the session's leases."""

    session: str


Pulls = Callable[[Pulled | Nothing | StoreError], None]
Settles = Callable[[Settlement | StoreError], None]
Settled = Callable[[Settlement | Held | StoreError], None]  # of one call


@dataclass(slots=True)
class Pull:
    """A request for one message."""

    request: bytes
    keep_ms: int
    queue: Queue
    largest: int  # octets of a body; a larger message goes back
    done: Pulls


@dataclass(slots=True)
class Settle:
    """A request to settle a pull."""

    request: bytes
    queue: Queue
    session: str  # that holds the lease; '' = this process, or unknown
    done: Settled


Request = Pull | Settle
