"""Cut streams into ranges of ids (stretches) of similar length that can be read in parallel.

Ids show when entries were added, not how many there are; so the server is asked where entries are. A range is halved
by time until its estimated number of entries is small enough, and each half begins at an existing entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from services.redis_stream.schema import Kind
from services.store.catalogue import BEGINNING, LAST_NUMBER, StreamReader, next_id
from services.store.catalogue import parse_id as parse

FINER = 2.0  # how much smaller than a stretch pieces are before they are joined
LOOKED_AT = 8  # entries at each end of a piece that show its density
MOST_ASKED = 2000  # requests for one stream; they take less than a second

Id = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, and the range to read: after `start`, up to `end`."""

    kind: Kind
    key: str
    start: str
    end: str
    domain: str = ""
    queue: str = ""
    qid: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of a stream."""

    stream: Stream
    start: str
    end: str
    rows: float = field(default=0.0, compare=False)  # estimated number of entries


def cut(reading: StreamReader, stream: Stream, rows: int, parts: int) -> list[Stretch]:
    """Return stretches in order, without gaps; none if there is nothing to read. parts: least number, if possible."""
    state = reading.state(stream.key)
    if state is None or not state.first or parse(stream.end) <= parse(stream.start):
        return []
    begin = reading.first_from(stream.key, _behind(stream.start))
    last = next(iter(reading.ids_before(stream.key, stream.end, 1)), "")
    if not begin or not last or parse(begin) > parse(last):
        return []
    pieces = Pieces(reading, stream.key, parse(state.first), next_id(parse(state.last)), state.length)
    pieces.keep(parse(begin), next_id(parse(last)))
    # right before the first existing entry, so that a reader can detect its loss
    start = stream.start if stream.start == BEGINNING else _before(parse(begin))
    ends, numbers = zip(*pieces.joined(rows, parts), strict=True)
    bounds = pairwise((start, *ends[:-1], stream.end))
    return [Stretch(stream, *each, number) for each, number in zip(bounds, numbers, strict=True)]


def _behind(start: str) -> str:
    return "-" if start == BEGINNING else f"({start}"


@dataclass(slots=True)
class _Piece:
    """A range from one entry up to the first of the next piece."""

    first: Id
    behind: Id  # first of the next piece
    weight: float  # estimated number of entries


class Pieces:
    """The pieces between two entries, finer where there are many entries."""

    def __init__(self, reading: StreamReader, key: str, first: Id, behind: Id, length: int) -> None:
        self._reading = reading
        self._key = key
        self._asked = 0
        self._pieces = [_Piece(first, behind, float(length))]

    def keep(self, first: Id, behind: Id) -> None:
        """Keep only the range between these ids."""
        (piece,) = self._pieces
        if first > piece.first:
            _, piece = self._split(piece, first)
        if behind < piece.behind:
            piece, _ = self._split(piece, behind)
        self._pieces = [piece]

    def joined(self, rows: int, parts: int) -> list[tuple[str, float]]:
        """Return last ids of stretches and their estimated entries: about `rows`, or fewer for `parts` stretches."""
        length = self._pieces[0].weight
        if length > rows or parts > 1:
            size = max(1.0, min(rows, length / parts))
            while self._asked < MOST_ASKED and (coarse := self._coarsest(size)) is not None:
                self._halve(coarse)
            return self._joined(size)
        return [("", length)]

    def _coarsest(self, size: float) -> int | None:
        """Return the piece to halve next: the heaviest, if it is too heavy for a stretch."""
        found = max(range(len(self._pieces)), key=lambda at: self._pieces[at].weight)
        piece = self._pieces[found]
        return found if piece.weight > size / FINER and _middle(piece) != piece.first else None

    def _halve(self, at: int) -> None:
        """Halve a piece at an existing entry near its middle."""
        piece = self._pieces[at]
        middle = self._first_from(_middle(piece))
        if middle is None or middle >= piece.behind:  # there are no entries after its middle
            piece.behind = _middle(piece)
            if piece.behind <= piece.first:
                piece.weight = 0.0
            return
        self._pieces[at : at + 1] = self._split(piece, middle)

    def _split(self, piece: _Piece, middle: Id) -> tuple[_Piece, _Piece]:
        """Split a piece; the halves share its weight by the density at their ends."""
        crowds = self._crowd(piece.first, middle), self._crowd(middle, piece.behind)
        share = crowds[0] / (sum(crowds) or 1.0)
        return (
            _Piece(piece.first, middle, piece.weight * share),
            _Piece(middle, piece.behind, piece.weight * (1 - share)),
        )

    def _crowd(self, first: Id, behind: Id) -> float:
        """Return the estimated entries of a range, by the density at the denser of its ends."""
        self._asked += 2
        ids = self._reading.ids_from(self._key, _text(first), LOOKED_AT)
        ahead = [one for one in map(parse, ids) if one < behind]
        ids = self._reading.ids_before(self._key, f"({_text(behind)}", LOOKED_AT)
        back = [one for one in map(parse, ids) if one >= first]
        return max(_projected(ahead, first, behind), _projected(back[::-1], first, behind))

    def _first_from(self, start: Id) -> Id | None:
        self._asked += 1
        found = self._reading.first_from(self._key, _text(start))
        return parse(found) if found else None

    def _joined(self, size: float) -> list[tuple[str, float]]:
        """Join neighbours to stretches; a stretch ends before the next piece's first entry."""
        found, held = list[tuple[str, float]](), 0.0
        for piece, after in pairwise(self._pieces):
            held += piece.weight
            if held + after.weight / 2 >= size:
                found.append((_before(after.first), held))
                held = 0.0
        return [*found, ("", held + self._pieces[-1].weight)]


def _projected(ids: list[Id], first: Id, behind: Id) -> float:
    if len(ids) < LOOKED_AT:
        return float(len(ids))
    span = _distance(ids[0], ids[-1])
    return max(len(ids), len(ids) * _distance(first, behind) / span)


def _distance(first: Id, second: Id) -> float:
    """Return the distance in ms; entries of one ms are slightly apart."""
    return max(second[0] - first[0] + (second[1] - first[1]) / 1e6, 1e-6)


def _middle(piece: _Piece) -> Id:
    """Return the middle by time, or by number within one ms."""
    (first_ms, first), (behind_ms, behind) = piece.first, piece.behind
    if behind_ms - first_ms > 1:
        return (first_ms + behind_ms + 1) // 2, 0
    if behind_ms == first_ms:
        return first_ms, (first + behind) // 2
    return (behind_ms, 0) if behind > 0 else (first_ms, first)


def _text(identifier: Id) -> str:
    return f"{identifier[0]}-{identifier[1]}"


def _before(identifier: Id) -> str:
    """Return the next lower id."""
    first, second = identifier
    return f"{first}-{second - 1}" if second else f"{first - 1}-{LAST_NUMBER}"
