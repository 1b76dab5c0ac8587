"""Where the output is: which of Arrow's file systems, and which folder there. The driver and every task open it so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSystem

HADOOPS = "s3a://"  # the same buckets, as users of Spark and Hadoop write them
# these have no folders: what begins alike is listed together
WITHOUT_FOLDERS = ("s3", "gcs")


class OutputError(Exception):
    """The output cannot be read or written; the text says why."""


def as_url(output: str) -> str:
    """A plain path is one of this machine."""
    if "://" not in output:
        return Path(output).absolute().as_uri()
    folder, mark, query = output.partition("?")
    return folder.rstrip("/") + mark + query


def shown(output: str) -> str:
    """The URL without what may be secret: the name and password before the bucket, and what is behind `?`."""
    scheme, mark, rest = as_url(output).partition("://")
    place, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"


def opened(output: str) -> tuple[FileSystem, str]:
    """The file system and the path in it, without `/` at its end.

    output: a path, or a URL as Arrow knows them: `file`, `s3` (also written `s3a`), `gs`, `abfs`, `hdfs`. What a store
    of objects asks for beside that is in the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL...), or
    behind `?` (region, endpoint_override, scheme). Raises OutputError.
    """
    url = as_url(output)
    if url.startswith(HADOOPS):
        url = f"s3://{url.removeprefix(HADOOPS)}"
    try:
        files, root = FileSystem.from_uri(url)
    except (OSError, pa.ArrowException, ImportError) as error:
        raise OutputError(f"output {shown(output)}: {in_one_line(error)}") from None
    if not has_folders(files) and not root.strip("/"):
        raise OutputError(f"output {shown(output)}: name a bucket, as in s3a://bucket/folder")
    return files, root.rstrip("/")


def has_folders(files: FileSystem) -> bool:
    return files.type_name not in WITHOUT_FOLDERS


def make_folder_of(files: FileSystem, path: str) -> None:
    """Where there are folders."""
    if has_folders(files):
        files.create_dir(path.rpartition("/")[0], recursive=True)


def in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
