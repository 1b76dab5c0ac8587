"""Times as the API writes them: ISO 8601 in UTC, with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(ms: int) -> str:
    """ms since 1970 -> '2026-11-25T15:07:03.120Z'."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def moment_or_none(ms: int) -> str | None:
    """0 = never."""
    return moment(ms) if ms else None
