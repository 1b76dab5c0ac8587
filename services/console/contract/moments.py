"""Parse and format the API's times: ISO 8601 in UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

EPOCH = datetime.fromtimestamp(0, UTC)


def parse_moment(value: object) -> object:
    """Parse '2026-11-25T15:07:03.120Z', with any offset, to ms since 1970, at least 1. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value.upper())
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("must be an ISO 8601 time with an offset, as 2026-11-25T15:00:00Z")
    return max(1, (found - EPOCH) // timedelta(milliseconds=1))


# ms since 1970, in a query; 0: not given
Moment = Annotated[
    int, BeforeValidator(parse_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]


def moment(ms: int) -> str:
    """Format ms since 1970 as '2026-11-25T15:07:03.120Z'."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def moment_or_none(ms: int) -> str | None:
    """Format ms since 1970; 0, for never, becomes None."""
    return moment(ms) if ms else None
