"""Rewrite hours of many small files as few large ones, and list expired folders."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import SparkSession

from services.analytics.archive_files import FILE_OCTETS, batches, is_known
from services.analytics.begun import limit_of, read_begun
from services.analytics.cleaning.cleaning import archive_schema
from services.analytics.compute import Compute
from services.analytics.files import Files
from services.analytics.hours import days_below, hour_path, hours_of_day, later
from services.analytics.places import make_folder_of, opened
from services.analytics.plan import Plan
from services.analytics.publish import Move, done_file
from services.analytics.summaries import Summaries
from services.analytics.tables import AGGREGATES
from services.analytics.tasks import carried_out
from services.redis_stream.schema import Kind

MANY = 8  # small files of an hour that are not compacted
ROWS_A_FILE = 2_000_000
HELD_ROWS = 200_000  # written together
HELD_OCTETS = 64 << 20
TOLD = {"hour": pa.string(), "path": pa.string(), "left": pa.bool_()}
log = logging.getLogger(__name__)


def compact(
    spark: SparkSession,
    files: Files,
    compute: Compute,
    plan: Plan,
    staging: str,
    kind: Kind,
    moves: list[Move],
) -> tuple[list[Move], list[str]]:
    """Return the moves with compacted files instead of small ones, and the small files to remove."""
    coming = defaultdict[str, list[str]](list)  # staged files by target folder
    for source, target in moves:
        if target.startswith(f"archive/{kind}/"):
            coming[target.rpartition("/")[0]].append(source)
    crowded = {folder: small_files(files, compute, folder, new) for folder, new in coming.items()}
    parts = [
        Joined(kind, folder.removeprefix(f"archive/{kind}/day=").replace("/hour=", "T"), tuple(small))
        for folder, small in crowded.items()
        if len(small) > MANY
    ]
    told = carried_out(spark, parts, Joining(files.output, f"{staging}/compact/{kind}"), TOLD)
    left = {each["path"] for each in told if each["left"]}
    if left:
        text = "files of a newer version with unknown columns are not compacted"
        log.warning(text, extra={"action": "left", "kind": str(kind), "files": len(left)})
    joined = {path for part in parts for path in part.files} - left
    written = [each for each in told if not each["left"]]
    kept = [move for move in moves if move[0] not in joined]
    old = sorted(joined - {source for source, _ in moves})
    return [*kept, *_moves(written, plan.run, kind)], old


def small_files(files: Files, compute: Compute, folder: str, new: list[str]) -> list[str]:
    """Return the hour's files that have less than half of a full one, existing files first.

    Larger files are kept: each run that adds to the hour would rewrite them again. If an hour has few files, none is
    opened.
    """
    old = files.sizes(folder)
    if len(old) + len(new) <= MANY:
        return []
    sizes = {**old, **files.sizes(new[0].rpartition("/")[0])}
    paths = [path for path in (*old, *sorted(new)) if sizes[path] < FILE_OCTETS // 2]
    rows = compute.numbers_of_rows(paths)
    return [path for path in paths if rows[path] < ROWS_A_FILE // 2]


def _moves(told: list[dict[str, Any]], run: str, kind: Kind) -> list[Move]:
    found, numbers = [], dict[str, int]()
    for each in sorted(told, key=lambda each: (each["hour"], each["path"])):
        number = numbers[each["hour"]] = numbers.get(each["hour"], -1) + 1
        found.append((each["path"], f"archive/{kind}/{hour_path(each['hour'])}/{run}-c{number:04d}.parquet"))
    return found


@dataclass(frozen=True, slots=True)
class Joined:
    """The files of an hour to be joined, as paths below the output."""

    kind: Kind
    hour: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Joining:
    """The work of a task: copy the rows of one file after the other into larger files and row groups.

    It reports the files written, and the files left as they are because joining would drop their columns.
    """

    output: str
    folder: str

    def __call__(self, name: str, part: Joined) -> list[dict[str, Any]]:
        """Join the files of an hour. name: unique to the attempt."""
        files, root = opened(self.output)
        written = _Written(files, f"{root}/{self.folder}/{name}", part.kind)
        known = [path for path in part.files if is_known(files, root, path, part.kind)]
        for path in known:
            for rows in batches(files, root, path, part.kind, HELD_ROWS // 10):
                written.add(rows)
        told = [(path.removeprefix(f"{root}/"), False) for path in written.close()]
        told += [(path, True) for path in part.files if path not in known]
        return [{"hour": part.hour, "path": path, "left": is_left} for path, is_left in told]


class _Written:
    def __init__(self, files: FileSystem, name: str, kind: Kind) -> None:
        self._files = files
        self._name = name
        self._schema = archive_schema(kind)
        self._held: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0  # in the file that is open
        self._paths: list[str] = []
        make_folder_of(files, name)

    def add(self, rows: pa.Table) -> None:
        self._held += rows.to_batches()
        if sum(map(len, self._held)) >= HELD_ROWS or sum(each.nbytes for each in self._held) >= HELD_OCTETS:
            self._write()

    def close(self) -> list[str]:
        self._write()
        self._end()
        return self._paths

    def _write(self) -> None:
        if self._paths and not self._held:
            return  # the last file was just closed as full
        rows, self._held = pa.Table.from_batches(self._held, self._schema), []
        if self._writer is None:
            self._paths.append(f"{self._name}-{len(self._paths):04d}.parquet")
            self._writer = pq.ParquetWriter(
                self._paths[-1], self._schema, filesystem=self._files, compression="zstd"
            )
        self._writer.write_table(rows)
        self._rows += len(rows)
        if self._rows >= ROWS_A_FILE or self._writer.file_handle.tell() >= FILE_OCTETS:
            self._end()

    def _end(self) -> None:
        if self._writer:
            self._writer.close()
        self._writer, self._rows = None, 0


def expired(files: Files, ended: Summaries, plan: Plan) -> tuple[str, list[str]]:
    """Return the first hour that is kept, and all older folders."""
    if not plan.shape.retention_days:
        return "", []
    now = datetime.fromtimestamp(plan.now_ms / 1000, UTC).strftime("%Y-%m-%dT%H")
    first = later(now, -24 * plan.shape.retention_days)
    roots = [
        *(f"archive/{kind}" for kind in (Kind.DEAD, Kind.SAMPLES)),
        *(f"aggregates/{t.name}" for t in AGGREGATES),
    ]
    old = [
        path
        for root in roots
        for day in days_below(files, root)
        if day <= first[:10]
        for path in _of_day_before(files, root, day, first)
    ]
    return first, [*old, *_runs_before(files, ended, limit_of(plan))]


def _of_day_before(files: Files, root: str, day: str, first: str) -> list[str]:
    """Return a whole day's folder if the day is before the first hour, otherwise the folders of older hours."""
    if day < first[:10]:
        return [f"{root}/day={day}"]
    return [f"{root}/{hour_path(hour)}" for hour in sorted(hours_of_day(files, root, day)) if hour < first]


def _runs_before(files: Files, ended: Summaries, limit_ms: int) -> list[str]:
    """Return the plans, summaries, quarantine and reports of old runs."""
    old = [run for run in read_begun(files, ended).before(limit_ms) if files.exists(done_file(run))]
    kinds = (
        *("runs/{}", "quarantine/dead/run={}", "quarantine/samples/run={}", "quarantine/run={}"),
        *("reports/{}.html", "reports/{}.json"),
    )
    return [path for run in old for kind in kinds if files.exists(path := kind.format(run))]
