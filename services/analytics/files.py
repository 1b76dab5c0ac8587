"""Access the output folder, on this machine or in S3. Paths are relative to it, with `/` between parts.

All access uses Arrow's file systems, as in the tasks: one implementation, one set of credentials, no Java.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSelector, FileType, LocalFileSystem

from services.analytics.places import OutputError, has_folders, in_one_line, make_folder_of, opened, shown
from services.outside.document import BadDocument, read_json

PARQUET = ".parquet"
TEMPORARY = ".writing"  # suffix of an incomplete file
SETTLERS = 8  # files that are synced at a time


@dataclass(frozen=True, slots=True)
class Found:
    """An entry of a folder."""

    name: str
    is_folder: bool
    octets: int


class Files:
    """The files of the output. Every method raises OutputError."""

    def __init__(self, output: str) -> None:
        self.output = output
        self._url = shown(output)
        self._files, self._root = opened(output)
        self._is_local = isinstance(self._files, LocalFileSystem)
        self._has_folders = has_folders(self._files)

    def uri(self, path: str) -> str:
        """Return the URL of a path without credentials, for texts and for Spark."""
        return f"{self._url}/{path}" if path else self._url

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        with _explained(path):
            return bool(self._files.get_file_info(self._path(path)).type != FileType.NotFound)

    def list(self, path: str) -> list[Found]:
        """Return the entries of a folder by name; none if it does not exist."""
        with _explained(path):
            found = self._files.get_file_info(FileSelector(self._path(path), allow_not_found=True))
        listed = [Found(each.base_name, each.type == FileType.Directory, each.size or 0) for each in found]
        return sorted(listed, key=lambda each: each.name)

    def walk(self, path: str) -> Iterator[str]:
        """Yield all Parquet files below a folder, by path, except those whose names begin with `_` or `.`."""
        return (below for below, _ in self._walk(path))

    def sizes(self, path: str) -> dict[str, int]:
        """Return the same files with their octets, in the same order."""
        return dict(self._walk(path))

    def _walk(self, path: str) -> Iterator[tuple[str, int]]:
        for each in self.list(path):
            if each.is_folder:
                yield from self._walk(f"{path}/{each.name}")
            elif each.name[0] not in "_." and each.name.endswith(PARQUET):
                yield f"{path}/{each.name}", each.octets

    def read_json(self, path: str) -> Any:
        """Return the decoded JSON of a file."""
        try:
            return read_json(self.read_octets(path))
        except BadDocument as error:
            raise OutputError(f"{self.uri(path)} is not JSON: {error}") from None

    def read_octets(self, path: str) -> bytes:
        """Return the content of a file."""
        with _explained(path), self._files.open_input_file(self._path(path)) as stream:
            return bytes(stream.read())

    def octets_if_there(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return self.read_octets(path)
        except OutputError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def write_json(self, path: str, content: Any) -> None:
        """Write a file atomically: readers find the old content or the new, also after a power cut."""
        self._write(path + TEMPORARY, content)
        self.settle([path + TEMPORARY])
        self.move(path + TEMPORARY, path)
        self.settle([path.rpartition("/")[0]])

    def create_json(self, path: str, content: Any) -> bool:
        """Create a file and return whether it did not exist before."""
        if self.exists(path):
            return False
        mine = f"{path}.{content['owner']}"
        self._write(mine, content)
        self.settle([mine])
        try:
            return self._is_first(mine, path)
        finally:
            self.delete(mine)

    def _is_first(self, mine: str, path: str) -> bool:
        """Create the file from `mine`: exclusive where links are supported; elsewhere two may rarely succeed."""
        if self._is_local:
            try:
                os.link(self._path(mine), self._path(path))
                return True
            except FileExistsError:
                return False
            except OSError:
                pass  # not all file systems support links
        if self.exists(path):
            return False
        self.move(mine, path)
        return True

    def move(self, source: str, target: str) -> None:
        """Move a file in place of the target. Does nothing if it was already moved."""
        if not self.exists(source):
            if not self.exists(target):
                raise OutputError(f"{self.uri(source)} cannot be moved: it was removed by another program")
            return
        self._make_folder_of(target)
        with _explained(target):
            self._files.move(self._path(source), self._path(target))

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its content, if it exists."""
        with _explained(path):
            try:
                if self._files.get_file_info(self._path(path)).type == FileType.Directory:
                    self._delete_folder(self._path(path))
                else:
                    self._files.delete_file(self._path(path))
            except FileNotFoundError:
                pass

    def _delete_folder(self, path: str) -> None:
        """Delete a folder. In object stores, placeholders of folders go last, as some refuse it otherwise."""
        if not self._has_folders:
            below = self._files.get_file_info(FileSelector(path, recursive=True))
            for each in below:
                if each.type == FileType.File:
                    self._files.delete_file(each.path)
            folders = (each.path for each in below if each.type == FileType.Directory)
            for folder in sorted(folders, key=len, reverse=True):
                self._files.delete_dir(folder)
        self._files.delete_dir(path)

    def settle(self, paths: Iterable[str]) -> None:
        """Sync files and folders to the disk. Object stores need no sync."""
        if self._is_local:
            with ThreadPoolExecutor(SETTLERS) as settlers:
                for _ in settlers.map(self._settle, dict.fromkeys(paths)):
                    pass

    def _settle(self, path: str) -> None:
        with _explained(path):
            try:
                opened = os.open(self._path(path), os.O_RDONLY)
            except FileNotFoundError:
                return  # moved by the run that this one resumes
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def _write(self, path: str, content: Any) -> None:
        self.write_octets(path, json.dumps(content, indent=1, sort_keys=True).encode())

    def write_octets(self, path: str, content: bytes) -> None:
        """Write a file in place of what exists, not atomically: only for files that are not visible yet."""
        self._make_folder_of(path)
        with _explained(path), self._files.open_output_stream(self._path(path)) as stream:
            stream.write(content)

    def _make_folder_of(self, path: str) -> None:
        with _explained(path):
            make_folder_of(self._files, self._path(path))

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Raise errors of a path as OutputError in one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"output {path or 'folder'}: {in_one_line(error)}") from error
