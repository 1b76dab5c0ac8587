"""Sums over rows of tables: by keys, of histograms, of the most frequent."""

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
    return int(pc.sum(rows[column]).as_py() or 0)


def grouped(rows: pa.Table, keys: Sequence[str], **wanted: str) -> list[Row]:
    """wanted: column='sum', 'min' or 'max'. A row for each key, in no order."""
    found = rows.group_by([*keys]).aggregate([*wanted.items()])
    named = found.rename_columns({f"{column}_{how}": column for column, how in wanted.items()})
    return list(named.to_pylist())


def merged(rows: pa.Table, column: str) -> list[int]:
    """The sums of histograms by position."""
    counts = rows[column].combine_chunks().flatten().to_numpy().reshape(-1, CLASSES)
    return [int(each) for each in counts.sum(axis=0)]


def quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """The value that `share` of all do not exceed, linear inside of its bucket; above all bounds, the last one."""
    rank, seen, low = sum(counts) * share, 0, 0.0
    for count, high in zip(counts, (*bounds, bounds[-1]), strict=True):
        if count and seen + count >= rank:
            return low + (high - low) * ((rank - seen) / count)
        seen, low = seen + count, float(high)
    return None


def quantiles(rows: pa.Table, column: str, bounds: Sequence[float]) -> Quantiles:
    counts = merged(rows, column)
    shares = {name: quantile(counts, bounds, share) for name, share in QUANTILES.items()}
    return Quantiles(counts=tuple(counts), **shares)


def reasons(maps: Iterable[list[tuple[str, int]] | None]) -> Counter[str]:
    """Refusals of many rows by reason."""
    found: Counter[str] = Counter()
    for pairs in maps:
        for name, count in pairs or ():
            found[name] += count
    return found


def most(rows: Iterable[Row], keys: Sequence[str], *figures: str) -> list[Row]:
    """In the order of these figures, the greatest first; the same by their names."""
    return sorted(
        rows, key=lambda row: (*(-(row[each] or 0) for each in figures), *(row[key] for key in keys))
    )
