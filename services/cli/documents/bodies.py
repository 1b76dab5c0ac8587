"""Read message bodies from an argument, a file, or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import click

from services.cli.terminal.exits import usage
from services.cli.terminal.streams import open_input, read_chunks, read_pieces
from services.store.model import records as record

file_option = click.option(
    "--file", type=click.Path(path_type=Path), help="read the message from this file; - for stdin"
)


async def given_bodies(
    body: str | None, file: Path | None, separator: bytes | None = None
) -> AsyncIterator[list[bytes]]:
    """Yield the bodies in runs as they arrive; without a separator, one body. Raises Failure."""
    if body is not None:
        if file is not None or separator is not None:
            raise usage("BODY excludes --file and --lines: use one or the other")
        yield [os.fsencode(body)]
        return
    if file is None and sys.stdin.isatty():
        raise usage("no message: pass BODY, --file, or data on standard input")
    fd = open_input(file)
    try:
        if separator is None:
            yield [await _whole(fd)]
        else:
            async for pieces in read_pieces(fd, separator, record.MAX_LENGTH):
                yield pieces
    except ValueError:
        raise usage(f"a message of the input exceeds the limit of {record.MAX_LENGTH:,} bytes") from None
    finally:
        if fd != sys.stdin.fileno():
            os.close(fd)


async def _whole(fd: int) -> bytes:
    chunks, size = [], 0
    async for chunk in read_chunks(fd):
        chunks.append(chunk)
        size += len(chunk)
        if size > record.MAX_LENGTH:
            raise ValueError
    return b"".join(chunks)
