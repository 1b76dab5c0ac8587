"""Times as the API writes them: ISO 8601 in UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

EPOCH = datetime.fromtimestamp(0, UTC)


def parse_moment(value: object) -> object:
    """'2026-11-25T15:07:03.120Z', or with another offset -> ms since 1970, 1 at least. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value.upper())
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("write it in ISO 8601 with its offset, as in 2026-11-25T15:00:00Z")
    return max(1, (found - EPOCH) // timedelta(milliseconds=1))


# ms since 1970, in a query; 0: not said
Moment = Annotated[
    int, BeforeValidator(parse_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


def moment(ms: int) -> str:
    """ms since 1970 -> '2026-11-25T15:07:03.120Z'."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def moment_or_none(ms: int) -> str | None:
    """0 = never."""
    return moment(ms) if ms else None
