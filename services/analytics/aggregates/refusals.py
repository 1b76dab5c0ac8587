"""Count refusals by reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates.grouping import Grouped, Numbers, plainly

Key = tuple[str, ...]


class Refusals:
    """Counts of refusals by group and reason."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [*keys]
        self._sums = Grouped([*keys, "reason"], {"number": "sum"})

    def add(self, rows: pa.Table) -> None:
        """Add rows with the keys and `refused`."""
        refused = rows["refused"].combine_chunks()
        entries = refused.cast(pa.list_(refused.type.field(0).type))
        pairs = pc.list_flatten(entries)
        of_row = pc.list_parent_indices(entries)
        keys = {key: rows[key].combine_chunks().take(of_row) for key in self._keys}
        self._sums.add(
            pa.table({**keys, "reason": pc.struct_field(pairs, [0]), "number": pc.struct_field(pairs, [1])})
        )

    def beside(self, rows: pa.Table) -> pa.Table:
        """Return the rows with `refused`, sorted by reason, and `refused_all`; an empty map and 0 without refusals."""
        found: dict[Key, list[tuple[str, int]]] = {}
        for *key, reason, number in zip(*_lists(self._sums.result()), strict=True):
            found.setdefault(tuple(key), []).append((reason, number))
        of_rows = [sorted(found.get(key, ())) for key in zip(*_lists(rows.select(self._keys)), strict=True)]
        maps = pa.array(of_rows, pa.map_(pa.string(), pa.int64()))
        totals = pa.array([sum(number for _, number in pairs) for pairs in of_rows], pa.int64())
        return rows.append_column("refused", maps).append_column("refused_all", totals)


def totals(refused: pa.ChunkedArray) -> Numbers:
    """Return the sum over all reasons for each row."""
    maps = refused.combine_chunks()
    entries = maps.cast(pa.list_(maps.type.field(0).type))
    found: Numbers = np.zeros(len(maps), np.int64)
    counts = pc.struct_field(pc.list_flatten(entries), [1])
    np.add.at(found, pc.list_parent_indices(entries).to_numpy(), counts.to_numpy())
    return found


def _lists(rows: pa.Table) -> list[list[object]]:
    return [plainly(column).to_pylist() for column in rows.columns]
