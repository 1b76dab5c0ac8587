"""Find the output, a local folder or one in a bucket, and read and write small files in it, such as reports.

Spark reads and writes the tables; `spark_path` names them. Paths of files are relative to the output.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as parquet
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from services.outside.url import MASK, mask_url

BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EXAMPLE = "s3a://bucket/folder"
UNUSABLE = re.compile(r"[\[\]|^\\]|%[0-9A-Fa-f]{2}")  # in names of folders, by delta-rs
NO_SETTINGS = (
    "give only a folder, without `@`, `?` and `#`: keys and settings come from the environment "
    "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL)"
)


class OutputError(Exception):
    """The output cannot be read or written; the text says why."""


class NoOutput(OutputError):
    """The output can never be used; another one must be given."""


def shown(output: str) -> str:
    """Return the output as a URL, without a login and everything behind `?`."""
    url = output if "://" in output else Path(output).absolute().as_uri()
    return mask_url(url).replace(f"{MASK}@", "").partition("?")[0]


def in_one_line(error: BaseException) -> str:
    """Return the error's text in one line, without credentials."""
    return mask_url(" ".join(str(error).split())) or type(error).__name__


def absolute(output: str) -> str:
    """Return the output as programs in other folders find it."""
    return output if "://" in output else str(Path(output).absolute())


def spark_path(output: str, *parts: str) -> str:
    """Return the URL of a path below the output for Spark, which decodes nothing in it. Raises NoOutput."""
    bucket, root = _place(output)
    return "/".join([f"s3a://{root}" if bucket else f"file://{root}", *map(str, parts)])


def check(output: str) -> None:
    """Check, without writing, that the output can be written. Raises NoOutput, OutputError."""
    bucket, root = _place(output)
    if found := UNUSABLE.search(root):
        raise NoOutput(f"output {shown(output)}: tables cannot be in a folder with {found[0]} in its name")
    with _files(output) as files:
        if not bucket:
            _check_folder(output, Path(root or "/"))
        elif files.get_file_info(root).type == FileType.File:
            raise NoOutput(f"output {shown(output)}: it is a file; give a folder")
        else:
            with suppress(OSError):  # access to the bucket itself may be denied
                if files.get_file_info(bucket).type == FileType.NotFound:
                    raise NoOutput(f"output {shown(output)}: the bucket does not exist; create it first")


def _check_folder(output: str, folder: Path) -> None:
    """Check a local folder; it may have to be created with its parents."""
    try:
        there = next(each for each in (folder, *folder.parents) if each.exists())
    except PermissionError as error:
        text = f"this user may not read a folder above it: {in_one_line(error)}"
        raise NoOutput(f"output {shown(output)}: {text}") from None
    if not there.is_dir():
        raise NoOutput(f"output {shown(output)}: {there} is a file; give a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise NoOutput(f"output {shown(output)}: this user may not write into {there}")


def exists(output: str, path: str) -> bool:
    """Return whether there is a file or folder. Raises OutputError."""
    with _files(output, path) as files:
        return bool(files.get_file_info(_below(output, path)).type != FileType.NotFound)


def is_bucket(output: str) -> bool:
    """Return whether the output is in a bucket. Raises NoOutput."""
    return bool(_place(output)[0])


def create_folder(output: str) -> None:
    """Create the folder of an output with its parents, unless it exists. Raises NoOutput, OutputError."""
    with _files(output) as files:
        files.create_dir(_place(output)[1], recursive=True)


def read(output: str, path: str) -> bytes | None:
    """Return the content of a file, None if there is none. Raises OutputError."""
    with _files(output, path) as files, suppress(FileNotFoundError):
        return bytes(files.open_input_file(_below(output, path)).readall())
    return None


def write(output: str, path: str, octets: bytes) -> None:
    """Write a file so that readers find the old content or the new. Raises OutputError."""
    final = _below(output, path)
    with _files(output, path) as files:
        is_local = isinstance(files, LocalFileSystem)  # an object appears when it is complete
        written = f"{final}.{secrets.token_hex(4)}.writing" if is_local else final
        if is_local:
            files.create_dir(final.rpartition("/")[0], recursive=True)
        with files.open_output_stream(written) as stream:
            stream.write(octets)
        if is_local:
            files.move(written, final)


def write_parquet(output: str, path: str, rows: pa.Table) -> int:
    """Write rows to a new Parquet file, and return its octets. Raises OutputError."""
    final = _below(output, path)
    with _files(output, path) as files:
        if isinstance(files, LocalFileSystem):
            files.create_dir(final.rpartition("/")[0], recursive=True)
        parquet.write_table(rows, final, filesystem=files, compression="zstd")
        return int(files.get_file_info(final).size)


def times(output: str, path: str) -> dict[str, datetime]:
    """Return the files of a folder, if it exists, with the times of their last changes. Raises OutputError."""
    with _files(output, path) as files:
        found = files.get_file_info(FileSelector(_below(output, path), allow_not_found=True))
        return {each.base_name: each.mtime for each in found if each.type == FileType.File}


def delete(output: str, path: str) -> None:
    """Delete a file, if it exists. Raises OutputError."""
    with _files(output, path) as files, suppress(FileNotFoundError):
        files.delete_file(_below(output, path))


def _place(output: str) -> tuple[str, str]:
    """Return the bucket, '' for a local folder, and the path, with the bucket, without `/` at its end."""
    if "://" not in output:
        return "", str(Path(output).absolute()).rstrip("/")
    scheme, _, rest = output.partition("://")
    bucket = "" if scheme == "file" else rest.partition("/")[0].partition("?")[0]
    if scheme not in ("file", "s3", "s3a"):
        raise NoOutput(f"output {shown(output)}: unknown scheme {scheme}; give a folder, or {EXAMPLE}")
    if scheme == "file" and not rest.startswith("/"):
        raise NoOutput(f"output {shown(output)}: give an absolute path, as in file:///folder")
    if scheme != "file" and not bucket:
        raise NoOutput(f"output {shown(output)}: name a bucket, as in {EXAMPLE}")
    if any(sign in rest for sign in "@?#") or (bucket and not BUCKET.fullmatch(bucket)):
        raise NoOutput(f"output {shown(output)}: {NO_SETTINGS}")
    return bucket, unquote(rest).rstrip("/")


def _below(output: str, path: str) -> str:
    return f"{_place(output)[1]}/{path}"


@contextmanager
def _files(output: str, path: str = "") -> Iterator[FileSystem]:
    """Open the file system. Errors, also of what is done with it, become OutputErrors of one line."""
    bucket, _ = _place(output)
    try:
        yield FileSystem.from_uri(f"s3://{bucket}")[0] if bucket else LocalFileSystem()
    except (OSError, pa.ArrowException) as error:
        at = f"{shown(output).rstrip('/')}/{path}" if path else shown(output)
        raise OutputError(f"output {at}: {in_one_line(error)}") from error
