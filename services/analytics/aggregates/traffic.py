"""The tables traffic and edges."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates import histograms
from services.analytics.aggregates.grouping import Grouped, Numbers
from services.analytics.aggregates.peaks import Peaks, slots
from services.analytics.aggregates.refusals import Refusals, totals
from services.analytics.tables import EDGES, QUANTILES, SUMS, TRAFFIC
from services.store.model import CLASSES, PUT_S, WAIT_S

HOUR_S = 3600
HISTOGRAMS = {"put": PUT_S, "wait": WAIT_S}
PUTS = "refused_puts"
BUCKETS = [histograms.of(name, at) for name in HISTOGRAMS for at in range(CLASSES)]


class Traffic:
    """Traffic of queues, from `queue` samples without repeats."""

    def __init__(self) -> None:
        keys = self._keys = [each.name for each in TRAFFIC.keys]
        self._sums = Grouped(keys, dict.fromkeys([*SUMS, PUTS, *BUCKETS], "sum"))
        self._peaks = Peaks(keys)
        self._refusals = Refusals(keys)

    def add(self, rows: pa.Table) -> None:
        """Add samples."""
        plain = rows.select([*self._keys, *SUMS]).append_column(PUTS, _refused_puts(rows))
        for name in HISTOGRAMS:
            for column, counts in histograms.columns(name, histograms.matrix(rows[name], CLASSES)).items():
                plain = plain.append_column(column, counts)
        self._sums.add(plain)
        self._peaks.add(rows)
        self._refusals.add(rows)

    def result(self, objective: float) -> pa.Table:
        """Return the table traffic. objective: share of puts that should be accepted."""
        found = self._refusals.beside(self._peaks.beside(self._sums.result()))
        for name, bounds in HISTOGRAMS.items():
            found = with_histogram(found, name, histograms.gathered(found, name, CLASSES), bounds)
        asked = pc.add(found["in"], found[PUTS])
        refused = _over(found[PUTS], asked)
        more = {
            "in_rate": _over(found["in"], pa.scalar(HOUR_S)),
            "out_rate": _over(found["out"], pa.scalar(HOUR_S)),
            "availability": _over(found["in"], asked),
            "budget_used": pc.divide(refused, pa.scalar(1 - objective)),
        }
        for name, column in more.items():
            found = found.append_column(name, column)
        return found


def _refused_puts(rows: pa.Table) -> pa.ChunkedArray:
    """Return the refused puts; for older edges that do not report them, all refusals."""
    told = rows[PUTS]
    return pc.coalesce(told, pa.array(totals(rows["refused"]))) if told.null_count else told


def with_histogram(rows: pa.Table, name: str, counts: Numbers, bounds: tuple[float, ...]) -> pa.Table:
    """Return the rows with a histogram and its quantiles."""
    rows = rows.append_column(name, histograms.lists(counts))
    for at, share in QUANTILES.items():
        rows = rows.append_column(f"{name}_{at}", histograms.quantile(counts, bounds, share))
    return rows


def _over(number: pa.ChunkedArray, whole: pa.ChunkedArray | pa.Scalar) -> pa.ChunkedArray:
    """Return the quotient, null where the divisor is 0."""
    divisor = whole.cast(pa.float64(), safe=False)
    divisor = pc.if_else(pc.equal(divisor, 0.0), pa.scalar(None, pa.float64()), divisor)
    return pc.divide(number.cast(pa.float64(), safe=False), divisor)


class Edges:
    """State of edges, from `edge` samples without repeats."""

    FLOWS = ("opened", "received_octets", "sent_octets")

    def __init__(self) -> None:
        self._sums = Grouped(["edge"], dict.fromkeys(self.FLOWS, "sum"))
        self._open = Grouped(["edge", "slot", "process"], {"connections": "max"})
        self._refusals = Refusals(["edge"])

    def add(self, rows: pa.Table) -> None:
        """Add samples."""
        self._sums.add(rows)
        self._open.add(rows.append_column("slot", slots(rows["at"])))
        self._refusals.add(rows)

    def result(self) -> pa.Table:
        """Return the table edges."""
        opened = self._open.result()
        found = self._sums.result().join(_processes(opened), "edge").join(_most_open(opened), "edge")
        return self._refusals.beside(found).select([each.name for each in (*EDGES.keys, *EDGES.values)])


def _processes(opened: pa.Table) -> pa.Table:
    by_edge = opened.group_by("edge", use_threads=False).aggregate([("process", "count_distinct")])
    return by_edge.rename_columns(["edge", "processes"])


def _most_open(opened: pa.Table) -> pa.Table:
    """Return the greatest sum of open connections of all processes in a slot of 10 s, by edge."""
    together = opened.group_by(["edge", "slot"], use_threads=False).aggregate([("connections", "sum")])
    most = together.group_by("edge", use_threads=False).aggregate([("connections_sum", "max")])
    return most.rename_columns(["edge", "connections_max"])
