"""Convert durations between the text of documents and milliseconds, which the store uses."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from services.store.model.document import text_schema

DURATION = re.compile(r"(\d+)(ms|s|m|h|d)\Z", re.ASCII)
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_NUMBER = (1 << 53) - 1  # Lua's numbers are exact up to here
# the digits of each unit keep the duration below MAX_NUMBER ms
DURATION_TEXT = "[0-9]{1,15}ms|[0-9]{1,12}s|[0-9]{1,10}m|[0-9]{1,9}h|[0-9]{1,8}d"
MAX_DURATION_TEXT = 17  # characters
NO_DURATION = "write a duration as a whole number and ms, s, m, h or d, as in 30s"

STORED = {"durations": "ms"}  # validation context of documents that the store itself wrote


def parse_duration(value: object, info: ValidationInfo) -> object:
    """Convert '30s' to 30000 (ms); numbers are accepted in stored documents only. Raises ValueError."""
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
    """Convert 30000 (ms) to '30s', in the largest exact unit that has room for the digits."""
    for unit in ("d", "h", "m", "s"):
        text = f"{ms // UNIT_MS[unit]}{unit}"
        if ms and ms % UNIT_MS[unit] == 0 and re.fullmatch(DURATION_TEXT, text):
            return text
    return f"{ms}ms"


Duration = Annotated[
    int,
    Field(ge=0, le=MAX_NUMBER),
    BeforeValidator(parse_duration),
    text_schema(DURATION_TEXT, MAX_DURATION_TEXT, NO_DURATION),
]
