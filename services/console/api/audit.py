"""The audit log."""

from __future__ import annotations

from typing import Any

from services.console.cursor import decode_cursor, encode_cursor
from services.console.moments import moment
from services.console.operations import Answer, Call
from services.console.problems import Problem
from services.store.audit import Line, is_place

LIST = "audit"


async def list_(call: Call) -> Answer:
    """The newest first."""
    before = ""
    if call.query.cursor:
        (before,) = decode_cursor(call.query.cursor, LIST, 1)
        if not is_place(before):
            raise Problem(400, "bad_cursor", "this is no cursor of this list")
    page = await call.console.audit.kept.page(before, call.query.limit)
    more = encode_cursor(LIST, page.next) if page.next is not None else None
    return Answer({"items": [_told(line) for line in page.lines], "next": more})


def _told(line: Line) -> dict[str, Any]:
    entry = line.entry
    return {
        "at": moment(line.at_ms),
        "who": entry.who,
        "role": entry.role,
        "auth": entry.auth,
        "address": entry.address,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "detail": entry.detail,
    }
