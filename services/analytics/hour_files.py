"""Write a task's Parquet files, one or more for each hour, with several open at a time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from services.analytics.archive_files import FILE_OCTETS
from services.analytics.cleaning.cleaning import by_hour
from services.analytics.places import make_folder_of
from services.redis_stream.schema import Kind

SPLIT_ROWS = 20_000  # rows that are split by hour together
GROUP_ROWS = 200_000  # rows of an hour that are written together
HELD_OCTETS = 96 << 20  # octets held of all hours; above that, the largest is written
OPEN = 64  # open files; above that, the least recently written one is closed


@dataclass(frozen=True, slots=True)
class Staged:
    """A written file."""

    hour: str  # 'YYYY-MM-DDTHH'; '': unusable records
    path: str  # below the folder of all tasks
    rows: int


def folder_of(hour: str) -> str:
    """Return the folder of an hour; '': the quarantine."""
    return f"day={hour[:10]}/hour={hour[11:]}" if hour else "quarantine"


@dataclass(slots=True)
class _File:
    path: str
    writer: pq.ParquetWriter
    rows: int = 0


@dataclass(slots=True)
class _Held:
    """Rows of an hour that wait to be written."""

    parts: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    octets: int = 0

    def add(self, part: pa.Table) -> None:
        """Add rows."""
        self.parts.append(part)
        self.rows += len(part)
        self.octets += part.nbytes


class HourFiles:
    """A context manager that writes rows to files by hour; files count only if it ends without an error."""

    def __init__(self, files: FileSystem, root: str, kind: Kind, task: str) -> None:
        """task: a name that no other task or attempt has."""
        self._files = files
        self._root = root
        self._kind = kind
        self._task = task
        self._new: list[pa.RecordBatch] = []
        self._new_rows = 0
        self._held: defaultdict[str, _Held] = defaultdict(_Held)
        self._open: dict[str, _File] = {}  # by hour, the most recently written last
        self.staged: list[Staged] = []  # complete files

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            self._split()
            for hour in list(self._held):
                self._write(hour)
            while self._open:
                self._close(next(iter(self._open)))
        self._open.clear()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows with the columns of the archive."""
        self._new.append(rows)
        self._new_rows += len(rows)
        if self._new_rows >= SPLIT_ROWS or rows.nbytes * len(self._new) > HELD_OCTETS:
            self._split()

    def _split(self) -> None:
        if not self._new:
            return
        for hour, part in by_hour(pa.Table.from_batches(self._new), self._kind):
            held = self._held[hour]
            held.add(part)
            if held.rows >= GROUP_ROWS:
                self._write(hour)
        self._new, self._new_rows = [], 0
        while sum(held.octets for held in self._held.values()) > HELD_OCTETS:
            self._write(max(self._held, key=lambda hour: self._held[hour].octets))

    def _write(self, hour: str) -> None:
        rows = pa.concat_tables(self._held.pop(hour).parts)
        file = self._open.pop(hour, None) or self._create(hour, rows.schema)
        self._open[hour] = file
        file.writer.write_table(rows, row_group_size=GROUP_ROWS)
        file.rows += len(rows)
        if file.writer.file_handle.tell() >= FILE_OCTETS:
            self._close(hour)

    def _create(self, hour: str, schema: pa.Schema) -> _File:
        if len(self._open) >= OPEN:
            self._close(next(iter(self._open)))
        path = f"{folder_of(hour)}/{self._task}-{len(self.staged) + len(self._open)}.parquet"
        whole = f"{self._root}/{path}"
        make_folder_of(self._files, whole)
        writer = pq.ParquetWriter(
            whole, schema, filesystem=self._files, compression="zstd", compression_level=1
        )
        return _File(path, writer)

    def _close(self, hour: str) -> None:
        file = self._open.pop(hour)
        file.writer.close()
        self.staged.append(Staged(hour, file.path, file.rows))
