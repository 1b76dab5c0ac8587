"""Files of the archive read: one that is damaged, or that no run has written, is named, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from services.analytics.places import OutputError, in_one_line
from services.analytics.records import archive_schema
from services.analytics.schema import Kind, conformed

FILE_OCTETS = 1 << 30  # then another one is begun: what is published is copied in a bucket, 5 GiB at most
NEEDED = {"stream", "id"}  # which name a row: no run has written a file without them
AWAY = "restore it from a backup, or move it out of the output to leave its rows out"
T = TypeVar("T")


class Foreign(ValueError):
    """It has other columns than the archive."""


@contextmanager
def named(path: str) -> Iterator[None]:
    """What is wrong with a file is an OutputError with its path."""
    try:
        yield
    except FileNotFoundError as error:
        raise OutputError(f"output {path}: {in_one_line(error)}") from error
    except (pa.ArrowInvalid, Foreign) as error:
        raise OutputError(f"output {path} cannot be read: {in_one_line(error)}; {AWAY}") from error
    except (OSError, pa.ArrowException) as error:  # Arrow says so of a damaged file, too
        raise OutputError(
            f"output {path} cannot be read: {in_one_line(error)}; try again. If the file is damaged: {AWAY}"
        ) from error


def each_named(path: str, rows: Iterable[T]) -> Iterator[T]:
    """The same rows; what is wrong with whoever takes them is not the file's fault."""
    with named(path):
        yield from rows


def number_of_rows(files: FileSystem, root: str, path: str) -> int:
    """Raises OutputError."""
    with named(path):
        return int(pq.read_metadata(f"{root}/{path}", filesystem=files).num_rows)


def is_known(files: FileSystem, root: str, path: str, kind: Kind) -> bool:
    """Whether it has no columns but the archive's: else a newer program has written it. Raises OutputError."""
    schema = archive_schema(kind)
    with named(path):
        found = pq.read_schema(f"{root}/{path}", filesystem=files)
        _checked(found, schema, schema.names)
    return {*found.names} <= {*schema.names}


def row_groups(
    files: FileSystem, root: str, path: str, kind: Kind, columns: Sequence[str], few: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of a row group at a time; columns that a file of before does not have are null. Raises OutputError.

    few: columns that are read as numbers of a dictionary.
    """
    return each_named(path, _row_groups(files, f"{root}/{path}", archive_schema(kind), columns, few))


def _row_groups(
    files: FileSystem, path: str, schema: pa.Schema, columns: Sequence[str], few: Sequence[str]
) -> Iterator[pa.Table]:
    with files.open_input_file(path) as opened:
        plain = pq.ParquetFile(opened)
        there = _checked(plain.schema_arrow, schema, columns)
        file = pq.ParquetFile(
            opened, metadata=plain.metadata, read_dictionary=[each for each in few if each in there]
        )
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=there, use_threads=False).combine_chunks()
            for name in columns:
                if name not in there:
                    rows = rows.append_column(name, pa.nulls(len(rows), schema.field(name).type))
            yield rows


def batches(files: FileSystem, root: str, path: str, kind: Kind, rows: int) -> Iterator[pa.Table]:
    """All columns of so many rows at a time, of one row group, as the archive has them now. Raises OutputError.

    Further columns are left out: see is_known.
    """
    return each_named(path, _batches(files, f"{root}/{path}", archive_schema(kind), rows))


def _batches(files: FileSystem, path: str, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    with files.open_input_file(path) as opened:
        file = pq.ParquetFile(opened)
        _checked(file.schema_arrow, schema, schema.names)
        for group in range(file.num_row_groups):  # whose octets are bounded; those of so many rows are not
            for batch in file.iter_batches(rows, row_groups=[group], use_threads=False):
                yield conformed(pa.Table.from_batches([batch]), schema)


def _checked(found: pa.Schema, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Those of the columns that are there. Raises Foreign."""
    if missing := sorted(NEEDED - {*found.names}):
        raise Foreign(f"it has no column {missing[0]}; it was not written by a run")
    there = [name for name in columns if name in found.names]
    for name in there:
        kind, wanted = found.field(name).type, schema.field(name).type
        if kind != wanted:
            raise Foreign(f"its column {name} is {kind} instead of {wanted}; it was not written by a run")
    return there
