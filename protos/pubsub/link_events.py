"""Events of a neighbour's link (pubsub.md 4.5)."""

from collections.abc import Mapping
from dataclasses import dataclass

Held = Mapping[tuple[bytes, bytes], tuple[tuple[int, int], ...]]
"""The entries that a store has: (store id, incarnation) to intervals of numbers.

Each interval is (from, to), inclusive. Intervals are sorted and do not touch.
"""


@dataclass(frozen=True, slots=True)
class Have:
    """HAVE, all its lines: the neighbour is `store` in its `incarnation`, and has the entries `held`."""

    store: bytes  # id of the neighbour's store
    incarnation: bytes  # of that store
    held: Held  # the entries that it has


@dataclass(frozen=True, slots=True)
class Follow:
    """FOLLOW, all its lines: the neighbour wants the entries that are not in `held`.

    `position` is one that an earlier Beat of ours gave on this link (None: none yet): entries up to there in our log
    have been sent before.
    """

    store: bytes  # id of the neighbour's store
    incarnation: bytes  # of that store
    held: Held  # the entries that it has, and does not want
    position: bytes | None  # in our log, from an earlier Beat of ours on this link; None: none yet


@dataclass(frozen=True, slots=True)
class Entries:
    """1 to MAX_RUN entries of one origin with consecutive numbers from `first`.

    `block` is their `SEND <tag> <message>` lines, each ended by a line feed; a message holds any bytes from 32 on.
    `bridged` entries came over a bridge from a queue and must not cross another one (5.2).
    """

    store: bytes  # id of the store where the entries began
    incarnation: bytes  # of that store
    first: int  # number of the first entry
    count: int  # of entries, 1 to MAX_RUN
    block: bytes  # `SEND <tag> <message>` lines, each ended by a line feed
    bridged: bool  # True if they came over a bridge from a queue (5.2)


@dataclass(frozen=True, slots=True)
class Gap:
    """GAP: the entries `first` to `last` of an origin are deleted, trimmed by retention."""

    store: bytes  # id of the store where the entries began
    incarnation: bytes  # of that store
    first: int  # number of the first entry
    last: int  # number of the last entry


@dataclass(frozen=True, slots=True)
class Beat:
    """BEAT: the neighbour is alive; its log up to `position` has been sent. None: no position is given."""

    position: bytes | None  # in the neighbour's log, up to where it has been sent


@dataclass(frozen=True, slots=True)
class Problem:
    """ERROR: why the neighbour closes the link; any bytes from 32 on."""

    reason: bytes  # for people


LinkEvent = Have | Follow | Entries | Gap | Beat | Problem  # what a `LinkConnection` yields
