"""Read and write pipes and files without blocking, so that heartbeats continue while a pipe is slow."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from services.cli.terminal.exits import usage

READ_BYTES = 256 << 10
WRITE_BYTES = 4096  # PIPE_BUF: a writable pipe takes this much without blocking


def open_input(file: Path | None) -> int:
    """Return a descriptor of the file, or of standard input for None and `-`. Raises Failure."""
    if file is None or str(file) == "-":
        return sys.stdin.fileno()
    try:
        fd = os.open(file, os.O_RDONLY)
    except OSError as error:
        raise usage(f"{file} cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):  # opening a directory succeeds
        os.close(fd)
        raise usage(f"{file} cannot be read: {os.strerror(errno.EISDIR)}")
    return fd


async def read_chunks(fd: int) -> AsyncIterator[bytes]:
    """Yield chunks as they arrive until the end."""
    loop = asyncio.get_running_loop()
    while True:
        await _wait(fd, loop.add_reader, loop.remove_reader)
        chunk = os.read(fd, READ_BYTES)
        if not chunk:
            return
        yield chunk


async def read_pieces(fd: int, separator: bytes, max_bytes: int) -> AsyncIterator[list[bytes]]:
    """Yield runs of pieces that end with the separator; a last piece without one counts too.

    Raises ValueError for a piece of more than max_bytes.
    """
    rest = b""
    async for chunk in read_chunks(fd):
        *pieces, rest = (rest + chunk).split(separator)
        if len(rest) > max_bytes:
            raise ValueError
        if pieces:
            yield pieces
    if rest:
        yield [rest]


async def write_all(fd: int, data: bytes) -> None:
    """Write all data; files may need `sync` to reach the disk. Raises OSError."""
    loop = asyncio.get_running_loop()
    is_file = _is_file(fd)
    view = memoryview(data)
    while view:
        if not is_file:
            await _wait(fd, loop.add_writer, loop.remove_writer)
        view = view[os.write(fd, view if is_file else view[:WRITE_BYTES]) :]


def sync(fd: int) -> None:
    """Return once everything written to a file is on disk. Slow. Raises OSError."""
    if _is_file(fd):
        os.fsync(fd)


def _is_file(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode)


async def _wait(fd: int, add: Callable[..., Any], remove: Callable[[int], Any]) -> None:
    ready = asyncio.Event()
    try:
        add(fd, ready.set)
    except PermissionError:  # a regular file is always ready
        return
    try:
        await ready.wait()
    finally:
        remove(fd)
