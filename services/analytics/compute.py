"""All tables of the hours that a run touched, from the archive of these hours with what the run adds to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from services.analytics.aggregates.changes import changes, figures
from services.analytics.aggregates.deaths import deaths, failures, origins, redrives
from services.analytics.aggregates.depths import depths
from services.analytics.aggregates.samples import HOURS, once
from services.analytics.aggregates.traffic import edges, traffic
from services.analytics.archive import Written
from services.analytics.files import Files
from services.analytics.plan import Plan
from services.analytics.records import AT, archive_schema
from services.analytics.schema import Kind
from services.analytics.tables import AGGREGATES, CHANGES, DEATHS, DEPTHS, TRAFFIC, Table

log = logging.getLogger(__name__)
FORMAT = "%Y-%m-%dT%H"


def later(hour: str, by: int) -> str:
    """The hour so many hours later."""
    return (datetime.strptime(hour, FORMAT) + timedelta(hours=by)).strftime(FORMAT)


def hour_path(hour: str) -> str:
    day, _, number = hour.partition("T")
    return f"day={day}/hour={number}"


def hours_below(files: Files, path: str) -> set[str]:
    """Which hours a folder has."""
    return {
        f"{day.name.removeprefix('day=')}T{hour.name.removeprefix('hour=')}"
        for day in files.list(path)
        if day.name.startswith("day=2") or day.name.startswith("day=1")
        for hour in files.list(f"{path}/{day.name}")
    }


def by_hours(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows that are sorted by day and hour, an hour at a time, without these columns."""
    ends = pc.run_end_encode(pc.binary_join_element_wise(rows["day"], rows["hour"], "T").combine_chunks())
    begin, values = 0, rows.drop_columns(["day", "hour"])
    for hour, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield hour, values.slice(begin, end - begin)
        begin = end


def parquet(rows: pa.Table) -> bytes:
    """The file as octets. Nothing in it tells of a time or a process."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata(), sink, compression="zstd")
    return bytes(sink.getvalue())


class Compute:
    """Reads below `archive` and below the run's staging, writes below the run's staging."""

    def __init__(
        self, spark: SparkSession, files: Files, plan: Plan, staging: str, written: dict[Kind, Written]
    ) -> None:
        """written: what was staged of each kind; paths are below `archive/<kind>` of the staging folder."""
        self._spark = spark
        self._files = files
        self._plan = plan
        self._staging = staging
        self._there = {kind: hours_below(files, f"archive/{kind}") for kind in AT}
        self._new: dict[Kind, dict[str, list[str]]] = {kind: {} for kind in AT}
        for kind, each in written.items():
            for file in each.files:
                path = f"{staging}/archive/{kind}/{file.path}"
                self._new[kind].setdefault(file.hour, []).append(path)
            self._new[kind].pop("", None)  # which nobody counts
        self.hours = self._touched()

    def _touched(self) -> list[str]:
        """Hours with new rows, and those after them, whose differences begin there; none that are closed."""
        new = {hour for hours in self._new.values() for hour in hours}
        known = {hour for hours in self._there.values() for hour in hours} | new
        after = {later(hour, 1) for hour in new} & known
        return sorted(hour for hour in new | after if hour >= self._plan.closed)

    def rows(self, kind: Kind, hours: Iterable[str]) -> DataFrame:
        """What the archive will have of these hours, with day and hour."""
        paths = [
            self._files.uri(path)
            for hour in hours
            for path in (*self._old(kind, hour), *self._new[kind].get(hour, ()))
        ]
        schema = from_arrow_schema(archive_schema(kind))
        found = (
            self._spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(*paths)
            if paths
            else (self._spark.createDataFrame([], schema))
        )
        at = F.col(AT[kind])
        return found.withColumns(
            {"day": at.cast("date").cast("string"), "hour": F.lpad(F.hour(at).cast("string"), 2, "0")}
        )

    def _old(self, kind: Kind, hour: str) -> list[str]:
        return [f"archive/{kind}/{hour_path(hour)}"] if hour in self._there[kind] else []

    def write_all(self) -> None:
        if not self.hours:
            return
        before = sorted({*self.hours, *(later(hour, -1) for hour in self.hours)})
        samples, dead = once(self.rows(Kind.SAMPLES, self.hours)), self.rows(Kind.DEAD, self.hours)
        looks = self._only_touched(depths(self.rows(Kind.SAMPLES, before)))
        shape = self._plan.shape
        self._write(TRAFFIC, traffic(samples, shape.objective))
        self._write(DEPTHS, looks)
        self._write(DEATHS, deaths(dead))
        found = {
            "edges": edges(samples),
            "origins": origins(dead, shape.top),
            "failures": failures(dead, shape.top),
            "redrives": redrives(dead, self._staged(DEPTHS)),
        }
        for table in AGGREGATES:
            if table.name in found:
                self._write(table, found[table.name])
        known = figures(*(self._of_week(table) for table in (TRAFFIC, DEPTHS, DEATHS)))
        self._write(CHANGES, changes(known, self.hours, shape.week_days))

    def _only_touched(self, rows: DataFrame) -> DataFrame:
        return rows.filter(F.concat_ws("T", *HOURS).isin(self.hours))

    def _write(self, table: Table, rows: DataFrame) -> None:
        """One file for each hour, its rows sorted: the same rows give the same octets.

        The tables are small, and Arrow writes them: what Spark writes tells of its columns in an order that differs
        from one JVM to the next.
        """
        begin = time.monotonic()
        typed = rows.select(*[F.col(each.name).cast(each.type) for each in table.columns])
        found = typed.sort(*table.key_names()).toArrow()
        for hour, part in by_hours(found):
            path = f"{self._folder(table)}/{hour_path(hour)}/{table.name}.parquet"
            self._files.write_octets(path, parquet(part))
        seconds = round(time.monotonic() - begin, 3)
        log.info("table computed", extra={"action": "table", "table": table.name, "seconds": seconds})

    def _folder(self, table: Table) -> str:
        return f"{self._staging}/aggregates/{table.name}"

    def _staged(self, table: Table) -> DataFrame:
        if not self._files.exists(self._folder(table)):
            return self._spark.createDataFrame([], table.schema())
        return self._spark.read.schema(table.schema()).parquet(self._files.uri(self._folder(table)))

    def _of_week(self, table: Table) -> DataFrame:
        """What is published of the week before the first hour, and what this run staged."""
        first = later(self.hours[0], -24 * self._plan.shape.week_days)
        root = f"aggregates/{table.name}"
        hours = [
            hour
            for hour in sorted(hours_below(self._files, root))
            if first <= hour < self.hours[-1] and hour not in self.hours
        ]
        if not hours:
            return self._staged(table)
        paths = [self._files.uri(f"{root}/{hour_path(hour)}") for hour in hours]
        reader = self._spark.read.schema(table.schema()).option("basePath", self._files.uri(root))
        return reader.parquet(*paths).unionByName(self._staged(table))
