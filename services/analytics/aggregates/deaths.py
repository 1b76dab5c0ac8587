"""The tables deaths, origins and failures."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates import histograms
from services.analytics.aggregates.grouping import (
    Grouped,
    Numbers,
    Parts,
    codes,
    ids,
    in_order,
    numbers,
    plainly,
)
from services.analytics.aggregates.traffic import with_histogram
from services.analytics.tables import AGE_S, DEATHS, FAILURES, ORIGINS

OF_QUEUE = ["domain", "queue"]
EXAMPLE = 200  # characters
KEYS = [each.name for each in FAILURES.keys]  # of failures
OF_FIRST = ["id", "stream", "example"]  # columns
AGES = [histograms.of("age", at) for at in range(len(AGE_S) + 1)]


class Deaths:
    """Counts of dead letters and histograms of their age."""

    def __init__(self) -> None:
        self._keys = [each.name for each in DEATHS.keys]
        self._ages = Grouped([*self._keys, "bucket"], {"count": "sum"})
        self._sums = Grouped(self._keys, dict.fromkeys(("count", "octets", "acquired", "redriven"), "sum"))

    def add(self, rows: pa.Table) -> None:
        """Add archived dead letters."""
        ones = pa.array(np.ones(len(rows), np.int64))
        keys = {key: rows[key] for key in self._keys}
        was_back = pc.greater(rows["redriven"], 0).cast(pa.int64())
        of = {"count": ones, "octets": rows["size"], "acquired": rows["acquired"].cast(pa.int64())}
        self._sums.add(pa.table({**keys, **of, "redriven": was_back}))
        age_s = (_ms(rows["died"]) - _ms(rows["enqueued"])) / 1000
        self._ages.add(pa.table({**keys, "bucket": pa.array(histograms.bucket(age_s, AGE_S)), "count": ones}))

    def result(self) -> pa.Table:
        """Return the table deaths."""
        found = self._sums.result()
        found = with_histogram(found, "age", self._counts(found), AGE_S)
        return found.append_column(
            "acquired_mean", pc.divide(_float(found["acquired"]), _float(found["count"]))
        )

    def _counts(self, of: pa.Table) -> Numbers:
        """Return a histogram for each row."""
        ages = self._ages.result()
        both = pa.concat_tables([of.select(self._keys), ages.select(self._keys)])
        found = codes(*both.columns)
        order = np.argsort(found[: len(of)])
        rows = order[np.searchsorted(found[: len(of)], found[len(of) :], sorter=order)]
        counts: Numbers = np.zeros((len(of), len(AGES)), np.int64)
        np.add.at(counts, (rows, ages["bucket"].to_numpy()), ages["count"].to_numpy())
        return counts


def _ms(time: pa.ChunkedArray) -> Numbers:
    return numbers(time.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()))


def _float(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.float64(), safe=False)


class Origins:
    """Counts of dead letters by origin."""

    def __init__(self) -> None:
        self._counts = Grouped([each.name for each in ORIGINS.keys], {"count": "sum"})

    def add(self, rows: pa.Table) -> None:
        """Add archived dead letters."""
        keys = {each.name: rows[each.name] for each in ORIGINS.keys}
        self._counts.add(pa.table({**keys, "count": np.ones(len(rows), np.int64)}))

    def result(self, top: int) -> pa.Table:
        """Return the `top` most frequent origins of each queue."""
        return most_frequent(self._counts.result(), top, ["origin"])


class Failures:
    """Groups of similar failures, each with its first letter: by ms and number of the id, then by the stream."""

    def __init__(self) -> None:
        self._parts = Parts(self._together)

    def add(self, rows: pa.Table) -> None:
        """Add archived dead letters."""
        died, texts = rows["died"], plainly(rows["error"])
        keys = {key: rows[key] for key in KEYS}
        first = {
            "id": rows["id"],
            "stream": rows["stream"],
            "example": pc.utf8_slice_codeunits(texts, 0, EXAMPLE),
        }
        count = np.ones(len(rows), np.int64)
        self._parts.add(pa.table({**keys, "count": count, "first": died, "last": died, **first}))

    def result(self, top: int) -> pa.Table:
        """Return the `top` most frequent failures of each queue."""
        found = most_frequent(self._parts.result(), top, ["reason", "pattern", "fingerprint"])
        return found.rename_columns({"id": "example_id"})

    def _together(self, rows: pa.Table) -> pa.Table:
        """Return one row for each group, with the id, stream and example of its first letter."""
        order = in_order(*ids(rows["id"]), _places(plainly(rows["stream"])))
        rank = np.empty(len(rows), np.int64)
        rank[order] = np.arange(len(rows))
        how = {"count": "sum", "first": "min", "last": "max", "rank": "min"}
        groups = Grouped(KEYS, how)
        groups.add(rows.append_column("rank", pa.array(rank)))
        found = groups.result()
        firsts = rows.select(OF_FIRST).take(pa.array(order[found["rank"].to_numpy()]))
        found = found.drop_columns("rank")
        for name in OF_FIRST:
            found = found.append_column(name, plainly(firsts[name]))
        return found


def _places(words: pa.ChunkedArray) -> Numbers:
    """Return the rank of each word among all of them."""
    return numbers(pc.index_in(words, value_set=pc.unique(words).sort()))


def most_frequent(counts: pa.Table, top: int, then: list[str]) -> pa.Table:
    """Return the `top` most frequent rows of each queue; ties are sorted by the columns `then`."""
    order = [(name, "ascending") for name in OF_QUEUE]
    ordered = counts.sort_by([*order, ("count", "descending"), *((name, "ascending") for name in then)])
    queues = codes(*(ordered[name] for name in OF_QUEUE))
    begins = np.flatnonzero(np.r_[True, queues[1:] != queues[:-1]]) if len(queues) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[begins, len(queues)])
    rank = np.arange(len(queues)) - np.repeat(begins, lengths)
    return ordered.filter(pa.array(rank < top))
