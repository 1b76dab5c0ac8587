"""The busiest 10 s of each group; counts of a sample are spread evenly over its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates.grouping import Grouped, Numbers, numbers

HOUR_MS = 3_600_000
SLOT_MS = 10_000
UNIT = 1000  # parts of a message; whole numbers, as sums of floats depend on their order
PIECES = 1_000_000  # pieces of samples, cut at slots, that are held at a time
WAYS = ("in", "out")


class Peaks:
    """Counts in slots of 10 s of the clock. Samples of the hour may begin in the last slot before it."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [*keys]
        self._slots = Grouped([*keys, "slot"], dict.fromkeys(WAYS, "sum"))

    def add(self, rows: pa.Table) -> None:
        """Add rows with the keys, `at`, `ms`, `in` and `out`."""
        for block in _blocks(rows):
            self._slots.add(_spread(block, self._keys))

    def beside(self, sums: pa.Table) -> pa.Table:
        """Return the sums with `in_peak` and `out_peak`, in messages per second."""
        most = Grouped(self._keys, dict.fromkeys(WAYS, "max"))
        most.add(self._slots.result())
        joined = sums.join(most.result().rename_columns([*self._keys, "most_in", "most_out"]), self._keys)
        for way in WAYS:
            rate = joined[f"most_{way}"].to_numpy() * 1000 / (UNIT * SLOT_MS)
            joined = joined.append_column(f"{way}_peak", pa.array(rate, pa.float64()))
        return joined


def slots(at: pa.ChunkedArray) -> pa.Array:
    """Return the slot of 10 s of each time."""
    return pa.array(_ms(at) // SLOT_MS)


def _ms(at: pa.ChunkedArray) -> Numbers:
    return numbers(at.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()))


def _bounds(rows: pa.Table) -> tuple[Numbers, Numbers, Numbers]:
    """Return begin, end and full length of each interval in ms; it spans from one slot to an hour and one slot."""
    end, length = _ms(rows["at"]), np.maximum(numbers(rows["ms"]), 1)
    return np.maximum(end - length, end - end % HOUR_MS - SLOT_MS), end, length


def _blocks(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield blocks of at most PIECES pieces; at least one block, also without rows."""
    begin, end, _ = _bounds(rows)
    pieces = np.cumsum((end - 1) // SLOT_MS - begin // SLOT_MS + 1)
    cuts = np.searchsorted(pieces, np.arange(PIECES, pieces[-1], PIECES)) if len(rows) else np.empty(0, int)
    places = [0, *cuts.tolist(), len(rows)]
    for first, behind in pairwise(places):
        yield rows.slice(first, behind - first)


def _spread(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return a row for each slot that overlaps with a sample."""
    begin, end, length = _bounds(rows)
    first = begin // SLOT_MS
    number = (end - 1) // SLOT_MS - first + 1
    of_row = np.repeat(np.arange(len(rows)), number)
    slot = first[of_row] + np.arange(len(of_row)) - np.repeat(np.cumsum(number) - number, number)
    inside = np.minimum(end[of_row], (slot + 1) * SLOT_MS) - np.maximum(begin[of_row], slot * SLOT_MS)
    share = inside / length[of_row] * UNIT
    counts = {way: np.rint(numbers(rows[way])[of_row] * share).astype(np.int64) for way in WAYS}
    taken = pa.array(of_row)
    own = {key: pc.take(rows[key].combine_chunks(), taken) for key in keys}
    return pa.table({**own, "slot": slot, **counts})
