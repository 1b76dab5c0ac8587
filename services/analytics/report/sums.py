"""Sum rows of tables by key, merge histograms, and sort by frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.tables import QUANTILES
from services.store.model import CLASSES
from services.store.report import Quantiles

Row = dict[str, Any]


def total(rows: pa.Table, column: str) -> int:
    """Return the sum of a column."""
    return int(pc.sum(rows[column]).as_py() or 0)


def grouped(rows: pa.Table, keys: Sequence[str], **wanted: str) -> list[Row]:
    """Return a row for each key, unsorted. wanted: column='sum', 'min' or 'max'."""
    found = rows.group_by([*keys]).aggregate([*wanted.items()])
    named = found.rename_columns({f"{column}_{how}": column for column, how in wanted.items()})
    return list(named.to_pylist())


def merged(rows: pa.Table, column: str) -> list[int]:
    """Return the sum of all histograms of a column."""
    counts = rows[column].combine_chunks().flatten().to_numpy().reshape(-1, CLASSES)
    return [int(each) for each in counts.sum(axis=0)]


def quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return the value that a share does not exceed, interpolated in its bucket; the last bound for values above it."""
    rank, seen, low = sum(counts) * share, 0, 0.0
    for count, high in zip(counts, (*bounds, bounds[-1]), strict=True):
        if count and seen + count >= rank:
            return low + (high - low) * ((rank - seen) / count)
        seen, low = seen + count, float(high)
    return None


def quantiles(rows: pa.Table, column: str, bounds: Sequence[float]) -> Quantiles:
    """Return the merged histogram of a column and its quantiles."""
    counts = merged(rows, column)
    shares = {name: quantile(counts, bounds, share) for name, share in QUANTILES.items()}
    return Quantiles(counts=tuple(counts), **shares)


def reasons(maps: Iterable[list[tuple[str, int]] | None]) -> Counter[str]:
    """Return refusals by reason, summed over all rows."""
    found: Counter[str] = Counter()
    for pairs in maps:
        for name, count in pairs or ():
            found[name] += count
    return found


def most(rows: Iterable[Row], keys: Sequence[str], *figures: str) -> list[Row]:
    """Return rows sorted by these figures, the greatest first; ties are sorted by the keys."""
    return sorted(
        rows, key=lambda row: (*(-(row[each] or 0) for each in figures), *(row[key] for key in keys))
    )
