"""Events of a neighbour's link (pubsub.md 4.5)."""

from collections.abc import Mapping
from dataclasses import dataclass

# (store id, incarnation) -> the intervals of numbers held, each (from, to) inclusive: sorted, not touching.
Held = Mapping[tuple[bytes, bytes], tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Have:
    """HAVE, all its lines: the neighbour is `store` in its `incarnation`, and has the entries `held`."""

    store: bytes
    incarnation: bytes
    held: Held


@dataclass(frozen=True, slots=True)
class Follow:
    """FOLLOW, all its lines: the neighbour wants the entries that are not in `held`.

    `position` is one that an earlier Beat of ours gave on this link (None: none yet): entries up to there in our log
    have been sent before.
    """

    store: bytes
    incarnation: bytes
    held: Held
    position: bytes | None


@dataclass(frozen=True, slots=True)
class Entries:
    """1 to MAX_RUN entries of one origin with consecutive numbers from `first`.

    `block` is their `SEND <tag> <message>` lines, each ended by a line feed; a message holds any bytes from 32 on.
    `bridged` entries came over a bridge from a queue and must not cross another one (5.2).
    """

    store: bytes
    incarnation: bytes
    first: int
    count: int
    block: bytes
    bridged: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """GAP: the entries `first` to `last` of an origin are deleted, trimmed by retention."""

    store: bytes
    incarnation: bytes
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Beat:
    """BEAT: the neighbour is alive; its log up to `position` has been sent. None: no position is given."""

    position: bytes | None


@dataclass(frozen=True, slots=True)
class Problem:
    """ERROR: why the neighbour closes the link; any bytes from 32 on."""

    reason: bytes


LinkEvent = Have | Follow | Entries | Gap | Beat | Problem
