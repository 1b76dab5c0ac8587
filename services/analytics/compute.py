"""Compute all tables of the hours that a run touched, from their archive and the run's new files."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from services.analytics.aggregates.changes import changes, figures
from services.analytics.aggregates.depths import redrives
from services.analytics.aggregates.hour import Share, tables
from services.analytics.archive import Written
from services.analytics.archive_files import number_of_rows
from services.analytics.cleaning.cleaning import AT
from services.analytics.files import Files
from services.analytics.hours import Hours, has_ended, hour_path, hours_below, later
from services.analytics.places import make_folder_of, opened
from services.analytics.plan import Plan
from services.analytics.settings import Shape
from services.analytics.table_files import (
    HOUR,
    READERS,
    in_order,
    parquet,
    parse,
    read_hours,
    table_path,
)
from services.analytics.tables import AGGREGATES, CHANGES, DEATHS, DEPTHS, REDRIVES, TRAFFIC, Table
from services.analytics.tasks import carried_out
from services.redis_stream.schema import Kind

log = logging.getLogger(__name__)
LEAST_ROWS, MOST_ROWS = 500_000, 4_000_000  # of an hour and kind for one task
BY_NAME = {table.name: table for table in AGGREGATES}
TOLD = {"table": pa.string(), "hour": pa.string(), "path": pa.string()}


class Compute:
    """The tables of a run: reads below `archive` and the run's staging, writes below the run's staging."""

    def __init__(
        self, spark: SparkSession, files: Files, plan: Plan, staging: str, written: dict[Kind, Written]
    ) -> None:
        """written: the staged files by kind; their paths are below `archive/<kind>` of the staging folder."""
        self._spark = spark
        self._files = files
        self._plan = plan
        self._staging = staging
        self._there = {kind: Hours(files, f"archive/{kind}") for kind in AT}
        self._new: dict[Kind, dict[str, list[str]]] = {kind: {} for kind in AT}
        self._rows: dict[str, int] = {}  # known numbers of rows by file
        for kind, each in written.items():
            for file in each.files:
                path = f"{staging}/archive/{kind}/{file.path}"
                self._new[kind].setdefault(file.hour, []).append(path)
                self._rows[path] = file.rows
            self._new[kind].pop("", None)  # the quarantine
        self.new = {hour for hours in self._new.values() for hour in hours}
        self.hours = self._touched()
        self._judged = self.hours  # hours whose changes were computed

    def _touched(self) -> list[str]:
        """Return hours with new rows, and the hours after them, whose differences depend on them; not closed hours."""
        own = self.new | {hour for hour in self._plan.again if self._is_known(hour)}
        after = {hour for each in own if self._is_known(hour := later(each, 1))}
        return sorted(hour for hour in own | after if hour >= self._plan.closed)

    def _is_known(self, hour: str) -> bool:
        return hour in self.new or any(hour in there for there in self._there.values())

    def skipped(self) -> list[str]:
        """Return the closed hours with new rows."""
        return sorted(self.new - {*self.hours})

    def late(self, first: str) -> int:
        """Return the number of new rows of closed hours from `first` on, which are only archived."""
        hours = [hour for hour in self.skipped() if hour >= first]
        paths = [path for hour in hours for of in self._new.values() for path in of.get(hour, ())]
        return sum(self._rows[path] for path in paths)

    def paths(self, kind: Kind, hour: str) -> list[str]:
        """Return the files of an hour in the future archive, existing ones first."""
        folder = f"archive/{kind}/{hour_path(hour)}"
        old = [*self._files.walk(folder)] if hour in self._there[kind] else []
        return [*old, *sorted(self._new[kind].get(hour, ()))]

    def write_all(self) -> None:
        """Compute and stage all tables."""
        with self._timed("of hours"):
            shares = self._shares()
            work = _Work(self._files.output, f"{self._staging}/parts", self._plan.shape)
            self._collect(carried_out(self._spark, shares, work, TOLD))
        with self._timed("redrives"):
            self._write_redrives()
        with self._timed("changes"):
            self._write_changes()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        seconds = round(time.monotonic() - begin, 3)
        log.info("tables computed", extra={"action": "tables", "tables": name, "seconds": seconds})

    def _shares(self) -> list[Share]:
        """Return the work of the tasks, the largest first, so that the last task is not a long one."""
        found = {(kind, hour): self.paths(kind, hour) for kind in AT for hour in self.hours}
        rows = self.numbers_of_rows([path for paths in found.values() for path in paths])
        sizes = {key: sum(rows[path] for path in paths) for key, paths in found.items()}
        tasks = 2 * self._spark.sparkContext.defaultParallelism
        size = min(max(sum(sizes.values()) // tasks, LEAST_ROWS), MOST_ROWS)
        shares = []
        for (kind, hour), paths in sorted(found.items(), key=lambda each: -sizes[each[0]]):
            before = tuple(self.paths(kind, later(hour, -1))) if kind is Kind.SAMPLES else ()
            number = math.ceil(sizes[kind, hour] / size)
            shares += [Share(kind, hour, tuple(paths), before, at, number) for at in range(number)]
        return shares

    def numbers_of_rows(self, paths: list[str]) -> Mapping[str, int]:
        """Return the rows by file, of these files and others; each file is read once. Raises OutputError."""
        files, root = opened(self._files.output)
        unknown = [path for path in paths if path not in self._rows]
        with ThreadPoolExecutor(READERS) as readers:
            numbers = readers.map(lambda path: number_of_rows(files, root, path), unknown)
            self._rows.update(zip(unknown, numbers, strict=True))
        return self._rows

    def _collect(self, told: list[dict[str, Any]]) -> None:
        """Merge each hour's parts of a table into its one file."""
        parts = defaultdict(list)
        for each in told:
            parts[each["table"], each["hour"]].append(each["path"])
        with ThreadPoolExecutor(READERS) as writers:
            for _ in writers.map(self._together, parts, parts.values()):
                pass

    def _together(self, key: tuple[str, str], paths: list[str]) -> None:
        table, hour = BY_NAME[key[0]], key[1]
        if len(paths) == 1:
            self._files.move(paths[0], self._staged(table, hour))
        else:
            rows = [parse(self._files.read_octets(path), table, hour) for path in paths]
            self._write(table, hour, pa.concat_tables(rows))

    def _write(self, table: Table, hour: str, rows: pa.Table) -> None:
        self._files.write_octets(self._staged(table, hour), parquet(in_order(rows, table)))

    def _staged(self, table: Table, hour: str) -> str:
        return f"{self._staging}/aggregates/{table_path(table, hour)}"

    def _write_redrives(self) -> None:
        both = (self._of_hours(DEATHS, self.hours), self._of_hours(DEPTHS, self.hours))
        for hour in self.hours:
            rows = redrives(*(table.filter(pa.compute.equal(table[HOUR], hour)) for table in both))
            if len(rows):
                self._write(REDRIVES, hour, rows)

    def _write_changes(self) -> None:
        """Stage the table changes for ended hours from the first computed one on, which is history of later hours.

        Hours are compared with what is published of the week before and what this run staged.
        """
        if not self.hours:
            return
        first = later(self.hours[0], -24 * self._plan.shape.week_days)
        roots = [f"aggregates/{table.name}" for table in (TRAFFIC, DEPTHS, DEATHS)]
        known = {hour for root in roots for hour in hours_below(self._files, root, first)} | {*self.hours}
        hours = sorted(hour for hour in known if hour >= first and has_ended(hour, self._plan.now_ms))
        self._judged = [hour for hour in hours if hour >= self.hours[0]]
        found = figures(*(self._of_hours(table, hours) for table in (TRAFFIC, DEPTHS, DEATHS)))
        for hour, rows in changes(found, self._judged, self._plan.shape.week_days):
            self._write(CHANGES, hour, rows)

    def emptied(self) -> list[str]:
        """Return published folders of tables that have no rows any more; call it once all is staged."""
        if not self.hours:
            return []
        of = {table: {*self.hours, *(self._judged if table is CHANGES else ())} for table in AGGREGATES}
        first = self.hours[0]  # no earlier hour has changes
        staged = {table: hours_below(self._files, f"{self._staging}/aggregates/{table.name}") for table in of}
        return [
            f"aggregates/{table.name}/{hour_path(hour)}"
            for table, hours in of.items()
            for hour in sorted(
                hours_below(self._files, f"aggregates/{table.name}", first) & hours - staged[table]
            )
        ]

    def _of_hours(self, table: Table, hours: list[str]) -> pa.Table:
        """Return rows with the column HOUR: staged by this run, otherwise published."""
        staged, published = f"{self._staging}/aggregates", "aggregates"
        there = {
            root: hours_below(self._files, f"{root}/{table.name}", min(hours, default=""))
            for root in (staged, published)
        }
        places = {
            hour: root
            for root in (published, staged)
            for hour in hours
            if hour in there[root] and (root == staged or hour not in self.hours)
        }
        return read_hours(self._files, table, places)


class _Work:
    """The work of a task: write the tables of a share, a file each."""

    def __init__(self, output: str, folder: str, shape: Shape) -> None:
        self._output = output
        self._folder = folder
        self._shape = shape

    def __call__(self, name: str, share: Share) -> list[dict[str, Any]]:
        files, root = opened(self._output)
        told = []
        for of, rows in tables(files, root, share, self._shape).items():
            if not len(rows):
                continue
            path = f"{self._folder}/{name}-{of}.parquet"
            make_folder_of(files, f"{root}/{path}")
            with files.open_output_stream(f"{root}/{path}") as written:
                written.write(parquet(in_order(rows, BY_NAME[of])))
            told.append({"table": of, "hour": share.hour, "path": path})
        return told
