"""The output folder, wherever it is: a local path, HDFS, s3a. Paths are relative to it, with `/` between their parts.

All of it goes by Hadoop's FileSystem in the JVM, which Spark writes with, too: so there is one set of file systems and
of credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

TEMPORARY = ".writing"  # behind the name of a file that is not whole yet


class OutputError(Exception):
    """The output cannot be read or written; the text says why."""


@dataclass(frozen=True, slots=True)
class Found:
    name: str
    is_folder: bool
    octets: int


def as_uri(output: str) -> str:
    """A plain path is one of this machine."""
    return output.rstrip("/") if "://" in output else Path(output).absolute().as_uri()


class Files:
    """Raises OutputError from every method."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        self.root = as_uri(output)
        context: Any = spark.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._io = context._jvm.org.apache.commons.io.IOUtils
        with _explained(self.root):
            self._files = self._path("").getFileSystem(context._jsc.hadoopConfiguration())

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def exists(self, path: str) -> bool:
        with _explained(path):
            return bool(self._files.exists(self._path(path)))

    def list(self, path: str) -> list[Found]:
        """What is in a folder, by name; nothing if there is no such folder."""
        with _explained(path):
            there = self._path(path)
            if not self._files.exists(there):
                return []
            found = [
                Found(s.getPath().getName(), s.isDirectory(), s.getLen())
                for s in self._files.listStatus(there)
            ]
        return sorted(found, key=lambda each: each.name)

    def walk(self, path: str) -> Iterator[str]:
        """All files below a folder, by path; those that begin with `_` or `.` are nobody's data."""
        for each in self.list(path):
            if each.is_folder:
                yield from self.walk(f"{path}/{each.name}")
            elif each.name[0] not in "_.":
                yield f"{path}/{each.name}"

    def read_json(self, path: str) -> Any:
        with _explained(path):
            stream = self._files.open(self._path(path))
            try:
                text = self._io.toString(stream, "UTF-8")
            finally:
                stream.close()
        try:
            return json.loads(text)
        except ValueError as error:
            raise OutputError(f"{self.uri(path)} is no JSON: {error}") from None

    def read_octets(self, path: str) -> bytes:
        with _explained(path):
            stream = self._files.open(self._path(path))
            try:
                return bytes(self._io.toByteArray(stream))
            finally:
                stream.close()

    def write_json(self, path: str, content: Any) -> None:
        """Whole or not at all: whoever reads finds the old content or the new."""
        self._write(path + TEMPORARY, content)
        self.move(path + TEMPORARY, path)

    def create_json(self, path: str, content: Any) -> bool:
        """Whether it was there not yet, and now is."""
        if self.exists(path):
            return False
        mine = f"{path}.{content['owner']}"
        self._write(mine, content)
        try:
            with _explained(path):
                return not self.exists(path) and bool(self._files.rename(self._path(mine), self._path(path)))
        finally:
            self.delete(mine)

    def move(self, source: str, target: str) -> None:
        """In place of what is there. A move that was done before is not done again."""
        if not self.exists(source):
            if not self.exists(target):
                raise OutputError(f"{self.uri(source)} is to be moved, and is gone: somebody else removed it")
            return
        with _explained(target):
            there = self._path(target)
            self._files.mkdirs(there.getParent())
            if self._files.rename(self._path(source), there):
                return
            self._files.delete(there, False)  # some file systems do not rename onto what is there
            if not self._files.rename(self._path(source), there):
                raise OutputError(f"{self.uri(source)} cannot be renamed to {self.uri(target)}")

    def delete(self, path: str) -> None:
        """A file, or a folder with everything in it; it may be gone already."""
        with _explained(path):
            self._files.delete(self._path(path), True)

    def _write(self, path: str, content: Any) -> None:
        self.write_octets(path, json.dumps(content, indent=1, sort_keys=True).encode())

    def write_octets(self, path: str, content: bytes) -> None:
        """In place of what is there; not at once: for what nobody looks at yet."""
        with _explained(path):
            there = self._path(path)
            self._files.mkdirs(there.getParent())
            stream = self._files.create(there, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()

    def _path(self, path: str) -> Any:
        return self._hadoop.Path(self.uri(path))


class _explained:
    """What Java said of a path, in one line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Py4JJavaError):
            raise OutputError(f"output {self._path or 'folder'}: {error.java_exception.toString()}") from None
