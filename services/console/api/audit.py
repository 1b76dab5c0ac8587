"""The audit log."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.moments import Moment, moment
from services.console.contract.problems import Problem
from services.console.core.route import Answer, Call
from services.console.queries.paging import Paged
from services.store.catalogue import AuditFilter, AuditLine, is_place

LIST = "audit"
LONGEST = 255  # characters of what a filter compares


class AuditQuery(Paged):
    """All that is said has to hold."""

    who: str = Field("", max_length=LONGEST, description="a part of the name, in capitals or not")
    action: str = Field("", max_length=LONGEST, description="a part of what was done, as `queue.` or `purge`")
    target: str = Field(
        "", max_length=LONGEST, description="a part of the queue's or peer's name, or whatever it was"
    )
    from_: Moment = Field(default_factory=int, alias="from", description="from this time on")
    to: Moment = Field(default_factory=int, description="before this time")

    def wanted(self) -> AuditFilter:
        return AuditFilter(self.who, self.action, self.target, self.from_, self.to)


async def list_(call: Call) -> Answer:
    """The newest first."""
    before = ""
    if call.query.cursor:
        (before,) = decode_cursor(call.query.cursor, LIST, 1)
        if not is_place(before):
            raise Problem(400, "bad_cursor", "this is no cursor of this list")
    page = await call.console.audit.kept.page(before, call.query.limit, call.query.wanted())
    more = encode_cursor(LIST, page.next) if page.next is not None else None
    return Answer({"items": [_told(line) for line in page.lines], "next": more})


def _told(line: AuditLine) -> dict[str, Any]:
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
