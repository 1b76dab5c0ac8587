"""Find the output's file system and folder; the driver and all tasks open it this way."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSystem, FileType, LocalFileSystem

from services.outside.url import MASK, BadUrl, mask_url, parse_url

HADOOPS = "s3a://"  # the same buckets, as written for Spark and Hadoop
SCHEMES = ("file", "s3", "s3a")  # Arrow supports more, which are not tested
WITHOUT_FOLDERS = "s3"  # folders are common prefixes of names there


class OutputError(Exception):
    """The output cannot be read or written; the text says why."""


class NoOutput(OutputError):
    """The output can never be used; another one must be given."""


def as_url(output: str) -> str:
    """Return the output as a URL; a plain path is a local folder."""
    if "://" not in output:
        return Path(output).absolute().as_uri()
    folder, mark, query = output.partition("?")
    scheme, _, path = folder.partition("://")
    return f"{scheme}://{path.rstrip('/') or path[:1]}{mark}{query}"


def shown(output: str) -> str:
    """Return the URL without its login and everything behind `?`."""
    return mask_url(as_url(output)).replace(f"{MASK}@", "").partition("?")[0]


def opened(output: str) -> tuple[FileSystem, str]:
    """Return the file system, and the path in it without `/` at its end.

    output: a path, or a URL: `file`, `s3` (also written `s3a`). Further settings of an object store come from the
    environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL...), or follow `?` (region, endpoint_override, scheme).
    Raises OutputError.
    """
    url = as_url(output)
    if (scheme := url.partition("://")[0]) not in SCHEMES:
        raise NoOutput(
            f"output {shown(output)}: unknown scheme {scheme}; give a folder, or s3a://bucket/folder"
        )
    if url.startswith(HADOOPS):
        url = f"s3://{url.removeprefix(HADOOPS)}"
    if url.startswith("s3://"):  # Arrow's errors would show the URL with its login
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
    """Check, without writing, that the output can be written. Raises NoOutput, OutputError."""
    files, root = opened(output)
    try:
        is_file = files.get_file_info(root).type == FileType.File
        has_bucket = has_folders(files) or not _is_missing(files, root.partition("/")[0])
    except PermissionError as error:  # of a local folder; object stores raise OSError
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
    """Return whether the bucket is missing; False if access to the bucket itself is denied."""
    try:
        return bool(files.get_file_info(bucket).type == FileType.NotFound)
    except (OSError, pa.ArrowException):
        return False


def _check_folder(output: str, folder: Path) -> None:
    """Check a local folder; it may have to be created with its parents."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        raise NoOutput(f"output {shown(output)}: {there} is a file; give a path below a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise NoOutput(f"output {shown(output)}: this user may not write into {there}")


def has_folders(files: FileSystem) -> bool:
    """Return whether the file system has folders."""
    return bool(files.type_name != WITHOUT_FOLDERS)


def make_folder_of(files: FileSystem, path: str) -> None:
    """Create the folder of a file, if the file system has folders."""
    if has_folders(files):
        files.create_dir(path.rpartition("/")[0], recursive=True)


def in_one_line(error: BaseException) -> str:
    """Return the error's text in one line, without credentials."""
    return mask_url(" ".join(str(error).split())) or type(error).__name__
