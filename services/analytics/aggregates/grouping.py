"""Group rows by keys, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HELD_ROWS = 300_000  # rows of reduced chunks that may wait to be merged
Numbers = npt.NDArray[Any]


class Parts:
    """Reduced chunks, merged whenever they have many rows."""

    def __init__(self, together: Callable[[pa.Table], pa.Table]) -> None:
        self._together = together
        self._parts: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Reduce a chunk and keep the result."""
        part = self._together(rows)
        self._parts.append(part)
        self._rows += len(part)
        if self._rows > HELD_ROWS and len(self._parts) > 1:
            self._parts = [self.result()]
            # If the groups remain many, counting them would merge them again with each chunk.
            self._rows = 0

    def result(self) -> pa.Table:
        """Return the merged chunks. At least one must have been added, even without rows."""
        return self._together(pa.concat_tables(self._parts)) if len(self._parts) > 1 else self._parts[0]


class Grouped:
    """Sums, minima and maxima by key, which do not depend on the order of the rows; columns keep their names."""

    def __init__(self, keys: Sequence[str], how: Mapping[str, str]) -> None:
        """how: 'sum', 'min' or 'max' by column; if empty, only the distinct keys are kept."""
        self._keys = [*keys]
        self._how = [*how.items()]
        self._parts = Parts(self._together)

    def add(self, rows: pa.Table) -> None:
        """Add a chunk."""
        self._parts.add(rows)

    def result(self) -> pa.Table:
        """Return one row for each group, unsorted."""
        return self._parts.result()

    def _together(self, rows: pa.Table) -> pa.Table:
        values = [name for name, _ in self._how]
        found = rows.select([*self._keys, *values]).unify_dictionaries()
        found = found.group_by(self._keys, use_threads=False).aggregate(self._how)
        columns = [*self._keys, *(f"{name}_{function}" for name, function in self._how)]
        return pa.table([plainly(found[column]) for column in columns], [*self._keys, *values])


def plainly(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary-encoded column as plain values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def numbers(column: pa.ChunkedArray) -> Numbers:
    """Return a column as a NumPy array."""
    found: Numbers = column.combine_chunks().to_numpy(zero_copy_only=False)
    return found


def codes(*columns: pa.ChunkedArray) -> Numbers:
    """Return a whole number for each row; rows have the same one if all columns are equal. Nulls are equal."""
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
    """Return the ms and the number of each id."""
    parts = pc.list_flatten(pc.split_pattern(column.combine_chunks(), "-")).cast(pa.uint64())
    pairs = parts.to_numpy().reshape(-1, 2)
    return pairs[:, 0].astype(np.int64), pairs[:, 1]


def in_order(*by: Numbers) -> Numbers:
    """Return the order of rows sorted by the first array, then the next; ties keep their order."""
    first, *others = by
    if np.all(first[1:] > first[:-1]):
        return np.arange(len(first))
    return np.lexsort((*reversed(others), first))
