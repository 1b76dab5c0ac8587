"""Arithmetic with hours, 'YYYY-MM-DDTHH' each, UTC."""
from __future__ import annotations
from datetime import UTC, datetime, timedelta
FORM = "%Y-%m-%dT%H"
def later(hour: str, by: int) -> str:
    return (datetime.strptime(hour, FORM) + timedelta(hours=by)).strftime(FORM)
def hour_at(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(FORM)
