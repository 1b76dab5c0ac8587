"""Durations of documents: text with a unit in files, milliseconds here and in the store."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from services.store.model.document import written

DURATION = re.compile(r"(\d+)(ms|s|m|h|d)\Z", re.ASCII)
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_NUMBER = (1 << 53) - 1  # Lua's numbers, in which the store counts, are exact up to here
# as many digits of each unit as stay below it in ms
DURATION_TEXT = "[0-9]{1,15}ms|[0-9]{1,12}s|[0-9]{1,10}m|[0-9]{1,9}h|[0-9]{1,8}d"
MAX_DURATION_TEXT = 17  # characters
NO_DURATION = "write a duration as a whole number and ms, s, m, h or d, as in 30s"

STORED = {"durations": "ms"}  # validation context of documents that the store itself wrote


def parse_duration(value: object, info: ValidationInfo) -> object:
    """'30s' -> 30000 (ms). Bare numbers are refused, they would have to guess the unit; our own are in ms."""
    if isinstance(value, str):
        found = DURATION.match(value)
        if not found:
            raise ValueError(NO_DURATION)
        if not re.fullmatch(DURATION_TEXT, value):
            raise ValueError("a duration has at most 15 digits of ms, 12 of s, 10 of m, 9 of h, 8 of d")
        return int(found[1]) * UNIT_MS[found[2]]
    if info.context != STORED:
        raise ValueError("write a duration with its unit, as in 30s")
    return value


def format_duration(ms: int) -> str:
    """30000 -> '30s', in the largest unit that is exact and that documents may have so many digits of."""
    for unit in ("d", "h", "m", "s"):
        text = f"{ms // UNIT_MS[unit]}{unit}"
        if ms and ms % UNIT_MS[unit] == 0 and re.fullmatch(DURATION_TEXT, text):
            return text
    return f"{ms}ms"


Duration = Annotated[
    int,
    Field(ge=0, le=MAX_NUMBER),
    BeforeValidator(parse_duration),
    written(DURATION_TEXT, MAX_DURATION_TEXT, NO_DURATION),
]
