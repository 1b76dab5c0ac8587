"""The table changes: values of an hour compared with those of the week before.

Median and median distance replace mean and deviation: one bad day in the week must not hide the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates.grouping import Numbers, codes
from services.analytics.hours import later
from services.analytics.table_files import HOUR

LEAST_HOURS = 24  # of history
LEAST_COUNT = 20  # messages, in the hour or as the median; fewer are noise
SUDDEN = 6.0  # least distance from the median in spreads
NORMAL = 1.4826  # from the median distance to the standard deviation
OF_QUEUE = ["domain", "queue"]
COUNTS = ("in", "out", "refused", "deaths")  # an hour that has no row of them has 0
MESSAGES = (*COUNTS, "len_max")


@dataclass(frozen=True, slots=True)
class Figures:
    """The values of one metric; NaN: unknown."""

    queues: pa.Table  # domain, queue
    values: Numbers  # queues x hours, as floats


def figures(traffic: pa.Table, depths: pa.Table, deaths: pa.Table) -> tuple[list[str], dict[str, Figures]]:
    """Return the hours with data and the values by metric, computed from the tables with the column HOUR."""
    keys = [HOUR, *OF_QUEUE]
    sums = [("in", "sum"), ("out", "sum"), ("refused_all", "sum"), ("put_p99", "max"), ("wait_p99", "max")]
    of_traffic = traffic.group_by(keys, use_threads=False).aggregate(sums)
    of_deaths = deaths.group_by(keys, use_threads=False).aggregate([("count", "sum")])
    columns = {
        **dict.fromkeys(("in", "out", "refused_all"), (of_traffic, "{}_sum")),
        **dict.fromkeys(("put_p99", "wait_p99"), (of_traffic, "{}_max")),
        "count": (of_deaths, "{}_sum"),
        "len_max": (depths, "{}"),
    }
    hours = sorted({hour for rows in (traffic, depths, deaths) for hour in pc.unique(rows[HOUR]).to_pylist()})
    called = {"refused_all": "refused", "count": "deaths"}
    return hours, {
        called.get(name, name): _placed(rows, rows[column.format(name)], hours)
        for name, (rows, column) in columns.items()
    }


def _placed(rows: pa.Table, values: pa.ChunkedArray, hours: list[str]) -> Figures:
    known = pc.is_valid(values)
    rows, values = rows.filter(known), values.filter(known)
    names, first, of_row = np.unique(
        codes(*(rows[name] for name in OF_QUEUE)), return_index=True, return_inverse=True
    )
    placed = np.full((len(names), len(hours)), np.nan)
    at = pc.index_in(rows[HOUR], value_set=pa.array(hours, pa.string())).to_numpy()
    placed[of_row, at] = values.to_numpy()
    return Figures(rows.select(OF_QUEUE).take(pa.array(first)), placed)


def changes(
    known: tuple[Sequence[str], dict[str, Figures]], hours: Iterable[str], week_days: int
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each hour with changes, and its rows. known: the result of `figures`, with the week before the hours."""
    there, metrics = known
    for hour in hours:
        first = later(hour, -24 * week_days)
        week = [at for at, each in enumerate(there) if first <= each < hour]
        if hour in there and len(week) >= LEAST_HOURS:
            at = there.index(hour)
            found = [_judged(name, each, week, at) for name, each in metrics.items()]
            rows = pa.concat_tables(found)
            if len(rows):
                yield hour, rows


def _judged(metric: str, figures: Figures, week: list[int], at: int) -> pa.Table:
    values, value = np.sort(figures.values[:, week], axis=1), figures.values[:, at]  # NaN is last
    if metric in COUNTS:
        values, value = np.sort(np.nan_to_num(values), axis=1), np.nan_to_num(value)
    median = _median(values)
    spread = _median(np.sort(np.abs(values - median[:, None]), axis=1)) * NORMAL
    # chance alone moves a count by its root; a latency or a length by a tenth means nothing
    floor = np.maximum(np.sqrt(median), 1.0) if metric in COUNTS else np.maximum(median / 10, 0.001)
    z = (value - median) / np.maximum(spread, floor)
    is_much = (np.fmax(value, median) >= LEAST_COUNT) | (metric not in MESSAGES)
    is_known = (~np.isnan(values)).sum(axis=1) >= LEAST_HOURS
    kept = np.flatnonzero(is_known & is_much & (np.abs(z) >= SUDDEN))
    columns = {"value": value, "week_median": median, "week_spread": spread, "z": z}
    return pa.table(
        {
            **{name: figures.queues[name].take(pa.array(kept)) for name in OF_QUEUE},
            "metric": pa.array([metric] * len(kept), pa.string()),
            **{name: column[kept] for name, column in columns.items()},
            "week_hours": pa.array([len(week)] * len(kept), pa.int64()),
            "verdict": pa.array(["up" if each > 0 else "down" for each in z[kept]], pa.string()),
        }
    )


def _median(ordered: Numbers) -> Numbers:
    """Return the median of each row, sorted and with NaN last; NaN for rows without values."""
    rows, size = np.arange(len(ordered)), (~np.isnan(ordered)).sum(axis=1)
    lower, upper = np.maximum(size - 1, 0) // 2, np.minimum(size // 2, ordered.shape[1] - 1)
    found: Numbers = (ordered[rows, lower] + ordered[rows, upper]) / 2
    return found
