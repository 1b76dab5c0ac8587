"""Where the output is: which of Arrow's file systems, and which folder there. The driver and every task open it so."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSystem, FileType, LocalFileSystem

from services.outside.url import MASK, BadUrl, mask_url, parse_url

HADOOPS = "s3a://"  # the same buckets, as users of Spark and Hadoop write them
SCHEMES = ("file", "s3", "s3a")  # Arrow knows more, with which nothing of this has ever been tried
WITHOUT_FOLDERS = "s3"  # there what begins alike is listed together


class OutputError(Exception):
    """The output cannot be read or written; the text says why."""


class NoOutput(OutputError):
    """It never can, whatever becomes of the machines: it is to be given otherwise."""


def as_url(output: str) -> str:
    """A plain path is one of this machine."""
    if "://" not in output:
        return Path(output).absolute().as_uri()
    folder, mark, query = output.partition("?")
    scheme, _, path = folder.partition("://")
    return f"{scheme}://{path.rstrip('/') or path[:1]}{mark}{query}"


def shown(output: str) -> str:
    """Return the URL without its login and everything behind `?`."""
    return mask_url(as_url(output)).replace(f"{MASK}@", "").partition("?")[0]


def opened(output: str) -> tuple[FileSystem, str]:
    """The file system and the path in it, without `/` at its end.

    output: a path, or a URL: `file`, `s3` (also written `s3a`). What a store of objects asks for beside that is in the
    environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL...), or behind `?` (region, endpoint_override, scheme).
    Raises OutputError.
    """
    url = as_url(output)
    if (scheme := url.partition("://")[0]) not in SCHEMES:
        raise NoOutput(
            f"output {shown(output)}: unknown scheme {scheme}; give a folder, or s3a://bucket/folder"
        )
    if url.startswith(HADOOPS):
        url = f"s3://{url.removeprefix(HADOOPS)}"
    if url.startswith("s3://"):  # Arrow's own words repeat the URL
        try:
            has_bucket = bool(parse_url(url).hosts)
        except BadUrl as error:
            raise NoOutput(f"output {shown(output)}: {error}") from None
        if not has_bucket:
            raise NoOutput(f"output {shown(output)}: name a bucket, as in s3a://bucket/folder")
    try:
        files, root = FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ImportError) as error:
        raise NoOutput(f"output {shown(output)}: {in_one_line(error)}") from None
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"output {shown(output)}: {in_one_line(error)}") from None
    if not has_folders(files) and not root.strip("/"):
        raise NoOutput(f"output {shown(output)}: name a bucket, as in s3a://bucket/folder")
    return files, root.rstrip("/")


def check(output: str) -> None:
    """Whether it can be written to, as far as can be seen without writing. Raises NoOutput, OutputError."""
    files, root = opened(output)
    try:
        is_file = files.get_file_info(root).type == FileType.File
        has_bucket = has_folders(files) or not _is_missing(files, root.partition("/")[0])
    except PermissionError as error:  # of a folder; what a store of objects refuses is none
        raise _closed(output, error) from None
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"output {shown(output)}: {in_one_line(error)}") from None
    if is_file:
        raise NoOutput(f"output {shown(output)}: it is a file; give a folder")
    if not has_bucket:
        raise NoOutput(f"output {shown(output)}: the bucket does not exist; create it first")
    if isinstance(files, LocalFileSystem):
        try:
            _check_folder(output, Path(root or "/"))
        except PermissionError as error:
            raise _closed(output, error) from None
        except OSError as error:
            raise OutputError(f"output {shown(output)}: {in_one_line(error)}") from None


def _closed(output: str, error: PermissionError) -> NoOutput:
    return NoOutput(f"output {shown(output)}: this user may not read a folder above it: {in_one_line(error)}")


def _is_missing(files: FileSystem, bucket: str) -> bool:
    """False where nobody says so: whoever may use one folder of it may perhaps not ask for the bucket itself."""
    try:
        return bool(files.get_file_info(bucket).type == FileType.NotFound)
    except (OSError, pa.ArrowException):
        return False


def _check_folder(output: str, folder: Path) -> None:
    """Of this machine: it may have to be made, and those above it."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise NoOutput(f"output {shown(output)}: {there} is a file; give a path below a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise NoOutput(f"output {shown(output)}: this user may not write into {there}")


def has_folders(files: FileSystem) -> bool:
    return bool(files.type_name != WITHOUT_FOLDERS)


def make_folder_of(files: FileSystem, path: str) -> None:
    """Where there are folders."""
    if has_folders(files):
        files.create_dir(path.rpartition("/")[0], recursive=True)


def in_one_line(error: BaseException) -> str:
    return mask_url(" ".join(str(error).split())) or type(error).__name__
