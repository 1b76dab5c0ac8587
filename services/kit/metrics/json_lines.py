"""Files of lines that one process appends to while others read: each line is a value of JSON.

A disk that is full, or a signal that cannot be caught, cuts a line short, and the next one may stand right behind it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any


def encode_line(value: object) -> bytes:
    """Of arrays alone: no part of one is a value, so that what was cut short is known by it."""
    return json.dumps(value).encode() + b"\n"


def whole_lines(text: bytes) -> bytes:
    """All but the last line if that has no end: it may be on its way."""
    return text[: text.rfind(b"\n") + 1]


def parse_lines(text: bytes) -> Iterator[Any]:
    """The values, without lines that were cut short."""
    for line in whole_lines(text).splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)
