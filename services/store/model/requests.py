"""Requests of a ring, each under an id that its sender gave it: what is asked, and what may come of it (ring.md 5.4).

The id has 16 octets. What was done under it is remembered, so that who repeats a request, on whatever process of the
store, is told again what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.queues import Queue


class Outcome(Enum):
    """What became of something that is done once."""

    STORED = "stored"  # now
    AGAIN = "again"  # it had been done before


Once = Callable[[Outcome | StoreError], None]


class Nothing(Enum):
    """Why a pull gives no message."""

    EMPTY = "empty"  # there was none for it
    EXPIRED = "expired"  # there was one, which has been settled since, or is back in its queue
    LOOKED = "looked"  # those looked at had expired: the verb asks again, and nobody is told


class Settlement(Enum):
    """What became of settling a pull."""

    SETTLED = "settled"  # now
    AGAIN = "again"  # it had been settled before
    EXPIRED = "expired"  # too late: the message went back to its queue
    UNKNOWN = "unknown"  # nothing was leased under this id here


@dataclass(frozen=True, slots=True)
class Pulled:
    """The message that is leased under the id of a pull."""

    delivery: Delivery
    again: bool  # a repeat: the lease may be another process's, so it is settled by the id and never released here


@dataclass(frozen=True, slots=True)
class Held:
    """The lease is of this session, so settling it takes the key of what that holds: the verb asks again."""

    session: str


Pulls = Callable[[Pulled | Nothing | StoreError], None]
Settles = Callable[[Settlement | StoreError], None]
Settled = Callable[[Settlement | Held | StoreError], None]  # of one call


@dataclass(slots=True)
class Pull:
    request: bytes
    keep_ms: int
    queue: Queue
    largest: int  # octets of a body; a message with more goes back
    done: Pulls


@dataclass(slots=True)
class Settle:
    """`session`: whose lease it is, '' = ours or not known."""

    request: bytes
    queue: Queue
    session: str
    done: Settled


Request = Pull | Settle
