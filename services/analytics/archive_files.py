"""Read files of the archive; errors name a damaged or foreign file and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from services.analytics.cleaning.cleaning import archive_schema
from services.analytics.places import OutputError, in_one_line
from services.redis_stream.schema import Kind, conformed

FILE_OCTETS = 1 << 30  # then a new file begins: publishing copies files in a bucket, at most 5 GiB each
NEEDED = {"stream", "id"}  # they identify a row, and every run writes them
AWAY = "restore it from a backup, or move it out of the output to leave its rows out"
T = TypeVar("T")


class Foreign(ValueError):
    """The file has other columns than the archive."""


@contextmanager
def named(path: str) -> Iterator[None]:
    """Raise errors in reading a file as OutputError with its path."""
    try:
        yield
    except FileNotFoundError as error:
        raise OutputError(f"output {path}: {in_one_line(error)}") from error
    except (pa.ArrowInvalid, Foreign) as error:
        raise OutputError(f"output {path} cannot be read: {in_one_line(error)}; {AWAY}") from error
    except (OSError, pa.ArrowException) as error:  # Arrow also raises it for damaged files
        raise OutputError(
            f"output {path} cannot be read: {in_one_line(error)}; try again. If the file is damaged: {AWAY}"
        ) from error


def each_named(path: str, rows: Iterable[T]) -> Iterator[T]:
    """Yield the rows; errors in reading them name the file, errors of the consumer do not."""
    with named(path):
        yield from rows


def number_of_rows(files: FileSystem, root: str, path: str) -> int:
    """Return the number of rows of a file. Raises OutputError."""
    with named(path):
        return int(pq.read_metadata(f"{root}/{path}", filesystem=files).num_rows)


def is_known(files: FileSystem, root: str, path: str, kind: Kind) -> bool:
    """Return whether the file has only columns of the archive; a newer version may add some. Raises OutputError."""
    schema = archive_schema(kind)
    with named(path):
        found = pq.read_schema(f"{root}/{path}", filesystem=files)
        _checked(found, schema, schema.names)
    return {*found.names} <= {*schema.names}


def row_groups(
    files: FileSystem, root: str, path: str, kind: Kind, columns: Sequence[str], few: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the rows of one row group at a time; columns missing in an older file are null. Raises OutputError.

    few: columns that are read dictionary-encoded.
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
    """Yield all columns of up to `rows` rows of one row group, in the current schema. Raises OutputError.

    Unknown columns are dropped: see is_known.
    """
    return each_named(path, _batches(files, f"{root}/{path}", archive_schema(kind), rows))


def _batches(files: FileSystem, path: str, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    with files.open_input_file(path) as opened:
        file = pq.ParquetFile(opened)
        _checked(file.schema_arrow, schema, schema.names)
        for group in range(
            file.num_row_groups
        ):  # the size of a row group is bounded, that of a number of rows is not
            for batch in file.iter_batches(rows, row_groups=[group], use_threads=False):
                yield conformed(pa.Table.from_batches([batch]), schema)


def _checked(found: pa.Schema, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    """Return the columns that the file has. Raises Foreign."""
    if missing := sorted(NEEDED - {*found.names}):
        raise Foreign(f"it has no column {missing[0]}; it was not written by a run")
    there = [name for name in columns if name in found.names]
    for name in there:
        kind, wanted = found.field(name).type, schema.field(name).type
        if kind != wanted:
            raise Foreign(f"its column {name} is {kind} instead of {wanted}; it was not written by a run")
    return there
