"""Rows grouped by keys, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HELD_ROWS = 300_000  # groups of chunks that wait to be brought together
Numbers = npt.NDArray[Any]


class Parts:
    """What is left of chunks, brought together whenever it has become much."""

    def __init__(self, together: Callable[[pa.Table], pa.Table]) -> None:
        self._together = together
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        part = self._together(rows)
        self._parts.append(part)
        self._rows += len(part)
        if self._rows > HELD_ROWS and len(self._parts) > 1:
            self._parts = [self.result()]
            self._rows = (
                0  # what differs stays much: counted again, it would be brought together with each chunk
            )

    def result(self) -> pa.Table:
        """At least one chunk was added, even if it had no rows."""
        return self._together(pa.concat_tables(self._parts)) if len(self._parts) > 1 else self._parts[0]


class Grouped:
    """Sums, least and greatest values of columns, whose names they keep. None of them depends on the rows' order."""

    def __init__(self, keys: Sequence[str], how: Mapping[str, str]) -> None:
        """how: 'sum', 'min' or 'max' by column; of none, what is left are the keys."""
        self._keys = [*keys]
        self._how = [*how.items()]
        self._parts = Parts(self._together)

    def add(self, rows: pa.Table) -> None:
        self._parts.add(rows)

    def result(self) -> pa.Table:
        """A row for each group, in no order."""
        return self._parts.result()

    def _together(self, rows: pa.Table) -> pa.Table:
        values = [name for name, _ in self._how]
        found = rows.select([*self._keys, *values]).unify_dictionaries()
        found = found.group_by(self._keys, use_threads=False).aggregate(self._how)
        columns = [*self._keys, *(f"{name}_{function}" for name, function in self._how)]
        return pa.table([plainly(found[column]) for column in columns], [*self._keys, *values])


def plainly(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as such, and not as numbers of a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def numbers(column: pa.ChunkedArray) -> Numbers:
    found: Numbers = column.combine_chunks().to_numpy(zero_copy_only=False)
    return found


def codes(*columns: pa.ChunkedArray) -> Numbers:
    """One whole number for each row, alike where all columns are alike; nulls are alike."""
    found: Numbers = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        words = column.combine_chunks()
        if not pa.types.is_dictionary(words.type):
            words = words.dictionary_encode(null_encoding="encode")
        indices = pc.fill_null(words.indices.cast(pa.int64()), len(words.dictionary)).to_numpy()
        more = len(words.dictionary) + 1
        if size * more >= 1 << 62:
            kept, found = np.unique(found, return_inverse=True)
            size = len(kept)
        found = found * more + indices
        size *= more
    return found


def ids(column: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """ms and number of ids."""
    parts = pc.list_flatten(pc.split_pattern(column.combine_chunks(), "-")).cast(pa.uint64())
    pairs = parts.to_numpy().reshape(-1, 2)
    return pairs[:, 0].astype(np.int64), pairs[:, 1]


def in_order(*by: Numbers) -> Numbers:
    """The rows' places as sorted by the first, then the next; those that are alike as they stand."""
    first, *others = by
    if np.all(first[1:] > first[:-1]):
        return np.arange(len(first))
    return np.lexsort((*reversed(others), first))
