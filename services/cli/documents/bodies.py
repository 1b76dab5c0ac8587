"""The bodies of messages that a command is given: its argument, a file, or standard input."""

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
    "--file", type=click.Path(path_type=Path), help="the message is what the file holds; - for stdin"
)


async def given_bodies(
    body: str | None, file: Path | None, separator: bytes | None = None
) -> AsyncIterator[list[bytes]]:
    """In runs as they come; without a separator it is one. Raises Failure."""
    if body is not None:
        if file is not None or separator is not None:
            raise usage("give either BODY, or --file and --lines")
        yield [os.fsencode(body)]
        return
    if file is None and sys.stdin.isatty():
        raise usage("no BODY: give it as an argument, with --file, or on standard input")
    fd = open_input(file)
    try:
        if separator is None:
            yield [await _whole(fd)]
        else:
            async for pieces in read_pieces(fd, separator, record.MAX_LENGTH):
                yield pieces
    except ValueError:
        raise usage(
            f"a message may have at most {record.MAX_LENGTH:,} bytes: one of the input has more"
        ) from None
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
