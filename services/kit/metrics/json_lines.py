"""Read and write files of JSON lines, to which one process appends while others read.

A full disk or SIGKILL may cut a line short, and the next line may follow it directly.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any


def encode_line(value: object) -> bytes:
    """Encode an array. No prefix of an array is valid JSON, so lines that were cut short are detected."""
    return json.dumps(value).encode() + b"\n"


def whole_lines(text: bytes) -> bytes:
    """Return the text without an unfinished last line."""
    return text[: text.rfind(b"\n") + 1]


def parse_lines(text: bytes) -> Iterator[Any]:
    """Yield the values, except of lines that were cut short."""
    for line in whole_lines(text).splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)
