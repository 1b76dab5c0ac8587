"""Lists of the entries in a store: `store/incarnation:from-to+from-to,...`, or `-` for none (pubsub.md 4.5)."""

import re
from collections.abc import Iterable, Iterator

from protos.pubsub.link_events import Held
from protos.pubsub.origins import INCARNATION, NUMBER, STORE, is_interval, is_origin
from protos.types import LocalError, PeerError

MAX_PIECE_BYTES = 60 << 10  # of a list in one line; the rest follows in the next
MAX_LINES = 1_000  # of one list
MAX_INTERVALS = 100_000  # of one list
INTERVAL_BYTES = 128  # memory used by one interval

_NOTHING = b"-"
_INTERVAL = NUMBER + b"-" + NUMBER
_ITEM = rb"%b/%b:%b(?:\+%b)*" % (STORE, INCARNATION, _INTERVAL, _INTERVAL)
_PIECE = re.compile(rb"%b(?:,%b)*,?" % (_ITEM, _ITEM))


class HeldList:
    """A list that may come in several pieces. PeerError reasons: `bad_held`, `held_too_long`."""

    __slots__ = ("_intervals", "_lines", "_origins", "_text_bytes")

    def __init__(self) -> None:
        self._origins: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}
        self._intervals = 0
        self._lines = 0
        self._text_bytes = 0

    @property
    def size(self) -> int:
        """Memory used, in bytes, about."""
        return self._text_bytes + self._intervals * INTERVAL_BYTES

    def add(self, text: bytes) -> bool:
        """Add one line's piece; return whether the list continues in the next line."""
        self._count(text)
        if text == _NOTHING and self._lines == 1:
            return False
        if not _PIECE.fullmatch(text):
            raise PeerError("bad_held")
        for item in text.removesuffix(b",").split(b","):
            name, _, intervals = item.partition(b":")
            store, _, incarnation = name.partition(b"/")
            self._origins.setdefault((store, incarnation), []).extend(_parse_intervals(intervals))
        return text.endswith(b",")

    def held(self) -> Held:
        """Return the whole list: intervals sorted, those that overlap or touch merged."""
        return {origin: merged(intervals) for origin, intervals in self._origins.items()}

    def _count(self, text: bytes) -> None:
        self._text_bytes += len(text)
        self._lines += 1
        self._intervals += text.count(b":") + text.count(b"+")  # one of these comes before each interval
        if self._lines > MAX_LINES or self._intervals > MAX_INTERVALS:
            raise PeerError("held_too_long")


def _parse_intervals(text: bytes) -> Iterator[tuple[int, int]]:
    for interval in text.split(b"+"):
        low, _, high = interval.partition(b"-")
        if not is_interval(int(low), int(high)):
            raise PeerError("bad_held")
        yield int(low), int(high)


def merged(intervals: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the same numbers with intervals sorted, and merged where they overlap or touch."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if result and low <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(high, result[-1][1])
        else:
            result.append((low, high))
    return tuple(result)


def encode_held(held: Held) -> list[bytes]:
    """Encode a list in pieces of at most MAX_PIECE_BYTES, at least one; all but the last end in a comma.

    Raises LocalError for a list that a neighbour would refuse.
    """
    if sum(map(len, held.values())) > MAX_INTERVALS:
        raise LocalError(f"more than {MAX_INTERVALS} intervals held")
    pieces: list[bytes] = []
    piece = bytearray()
    for (store, incarnation), intervals in held.items():
        beginning = _encode_name(store, incarnation)
        before = beginning
        for interval in map(_encode_interval, intervals):
            if len(piece) + len(before) + len(interval) > MAX_PIECE_BYTES:
                pieces.append(bytes(piece[1:]) + b",")
                piece.clear()
                before = beginning
            piece += before + interval
            before = b"+"
    pieces.append(bytes(piece[1:]) or _NOTHING)
    return pieces


def _encode_name(store: bytes, incarnation: bytes) -> bytes:
    if not is_origin(store, incarnation):
        raise LocalError(f"no origin: {store!r} {incarnation!r}")
    return b",%b/%b:" % (store, incarnation)


def _encode_interval(interval: tuple[int, int]) -> bytes:
    if not is_interval(*interval):
        raise LocalError(f"no interval: {interval}")
    return b"%d-%d" % interval
