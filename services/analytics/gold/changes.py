"""The table changes: values of an hour compared with those of the week before.

Median and median distance replace mean and deviation: one bad day in the week must not hide the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from services.analytics.gold.expressions import OF_QUEUE, shaped
from services.analytics.hours import later
from services.analytics.tables import CHANGES

LEAST_HOURS = 24  # of history
LEAST_COUNT = 20  # messages, in the hour or as the median; fewer are noise
SUDDEN = 6.0  # least distance from the median in spreads
NORMAL = 1.4826  # from the median distance to the standard deviation
COUNTS = ("in", "out", "refused", "deaths")  # an hour that has no row of them has 0
MESSAGES = (*COUNTS, "len_max")
FIGURES = ("value", "week_median", "week_spread", "z")
Numbers = npt.NDArray[Any]


def changes(
    tables: tuple[DataFrame, DataFrame, DataFrame],
    judged: Sequence[str],
    known: Sequence[str],
    week_days: int,
) -> DataFrame:
    """Return the table changes.

    Args:
        tables: traffic, depths and deaths, with the judged hours and the days before them.
        judged: hours that have ended, 'YYYY-MM-DDTHH'.
        known: the hours that have rows in the three tables, in order.
        week_days: how many days before an hour it is compared with.
    """
    found_weeks = weeks(judged, known, week_days)
    series = (
        _values(*tables)
        .groupBy("domain", "queue", "metric")
        .agg(
            F.collect_list(F.concat_ws("T", "day", "hour")).alias("hours"),
            F.collect_list("value").alias("values"),
        )
    )
    found = F.explode(_judge(known, found_weeks)("metric", "hours", "values"))
    rows = series.select("domain", "queue", "metric", found.alias("found")).select("*", "found.*")
    return shaped(rows.withColumn("verdict", F.when(F.col("z") > 0, "up").otherwise("down")), CHANGES)


def weeks(judged: Sequence[str], known: Sequence[str], week_days: int) -> dict[int, slice]:
    """Return the week before each judged hour with enough of it, as places in the known hours."""
    found = {}
    for hour in {*judged} & {*known}:
        first = later(hour, -24 * week_days)
        at = known.index(hour)
        begin = next(place for place, each in enumerate(known) if each >= first)
        if at - begin >= LEAST_HOURS:
            found[at] = slice(begin, at)
    return found


def _values(traffic: DataFrame, depths: DataFrame, deaths: DataFrame) -> DataFrame:
    """Return the known values: a row for each metric, queue and hour."""
    of_traffic = traffic.groupBy(*OF_QUEUE).agg(
        *(F.sum(name).alias(name) for name in ("in", "out")),
        F.sum("refused_all").alias("refused"),
        *(F.max(name).alias(name) for name in ("put_p99", "wait_p99")),
    )
    of_deaths = deaths.groupBy(*OF_QUEUE).agg(F.sum("count").alias("deaths"))
    parts = [
        _long(of_traffic, "in", "out", "refused", "put_p99", "wait_p99"),
        _long(of_deaths, "deaths"),
        _long(depths, "len_max"),
    ]
    return reduce(DataFrame.unionByName, parts).where(F.col("value").isNotNull())


def _long(rows: DataFrame, *metrics: str) -> DataFrame:
    return rows.unpivot(
        [*OF_QUEUE], [F.col(name).cast("double").alias(name) for name in metrics], "metric", "value"
    )


def _judge(known: Sequence[str], weeks: dict[int, slice]) -> Callable[..., Column]:
    """Return a function on columns of metrics and their values, with the changes of each as an array of structs."""

    def judge(metrics: pa.Array, hours: pa.Array, values: pa.Array) -> pa.Array:
        placed = np.full((len(metrics), len(known)), np.nan)
        at = pc.index_in(hours.flatten(), value_set=pa.array(known, pa.string())).to_numpy()
        placed[hours.value_parent_indices().to_numpy(), at] = values.flatten().to_numpy()
        names = metrics.to_numpy(zero_copy_only=False)
        found = [_judged(placed, names, hour, week) for hour, week in weeks.items()]
        return _lists(found, known, len(metrics))

    figures = ", ".join(f"{name}:double" for name in FIGURES)
    row = f"struct<day:string, hour:string, week_hours:bigint, {figures}>"
    # the stubs of PySpark demand a function type, of which PySpark warns
    made: Callable[..., Column] = arrow_udf(judge, f"array<{row}>")  # type: ignore[call-overload]
    return made


def _judged(placed: Numbers, metrics: Numbers, hour: int, week: slice) -> dict[str, Numbers]:
    """Return the rows of an hour: their places among the series, and their figures. placed: series x hours."""
    is_count, is_messages = np.isin(metrics, COUNTS), np.isin(metrics, MESSAGES)
    values, value = placed[:, week], placed[:, hour]
    values = np.sort(np.where(is_count[:, None], np.nan_to_num(values), values), axis=1)  # NaN is last
    value = np.where(is_count, np.nan_to_num(value), value)
    median = _median(values)
    spread = _median(np.sort(np.abs(values - median[:, None]), axis=1)) * NORMAL
    # chance alone moves a count by its root; a latency or a length by a tenth means nothing
    floor = np.where(is_count, np.maximum(np.sqrt(median), 1.0), np.maximum(median / 10, 0.001))
    z = (value - median) / np.maximum(spread, floor)
    is_much = (np.fmax(value, median) >= LEAST_COUNT) | ~is_messages
    is_known = (~np.isnan(values)).sum(axis=1) >= LEAST_HOURS
    kept = np.flatnonzero(is_known & is_much & (np.abs(z) >= SUDDEN))
    figures = dict(zip(FIGURES, (value[kept], median[kept], spread[kept], z[kept]), strict=True))
    size = week.stop - week.start
    return {"series": kept, "at": np.full(len(kept), hour), "week_hours": np.full(len(kept), size)} | figures


def _median(ordered: Numbers) -> Numbers:
    """Return the median of each row, sorted and with NaN last; NaN for rows without values."""
    rows, size = np.arange(len(ordered)), (~np.isnan(ordered)).sum(axis=1)
    lower, upper = np.maximum(size - 1, 0) // 2, np.minimum(size // 2, ordered.shape[1] - 1)
    found: Numbers = (ordered[rows, lower] + ordered[rows, upper]) / 2
    return found


def _lists(found: Sequence[dict[str, Numbers]], known: Sequence[str], number: int) -> pa.Array:
    """Return the rows of all hours as an array of structs for each series."""
    columns = {
        name: np.concatenate([np.empty(0, kind), *(each[name] for each in found)])
        for name, kind in {
            **dict.fromkeys(("series", "at", "week_hours"), np.int64),
            **dict.fromkeys(FIGURES, float),
        }.items()
    }
    order = np.argsort(columns["series"], kind="stable")
    hours = [known[at] for at in columns["at"][order]]
    fields = {
        "day": pa.array([hour[:10] for hour in hours], pa.string()),
        "hour": pa.array([hour[11:] for hour in hours], pa.string()),
        **{name: pa.array(columns[name][order]) for name in ("week_hours", *FIGURES)},
    }
    rows = pa.StructArray.from_arrays([*fields.values()], names=[*fields])
    ends = np.searchsorted(columns["series"][order], np.arange(number + 1))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rows)
