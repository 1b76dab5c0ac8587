"""Handler of the audit log."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from services.console.contract.cursor import bad_cursor, decode_cursor, encode_cursor
from services.console.contract.moments import Moment, moment
from services.console.core.route import Answer, Call
from services.console.queries.paging import Paged
from services.store.catalogue import AuditFilter, AuditLine, is_place

LIST = "audit"
LONGEST = 255  # characters of a filter


class AuditQuery(Paged):
    """Filters of the audit log; all have to match."""

    who: str = Field("", max_length=LONGEST, description="part of the user's name, ignoring case")
    action: str = Field("", max_length=LONGEST, description="part of the action, as `queue.` or `purge`")
    target: str = Field(
        "", max_length=LONGEST, description="part of the name of the queue, peer or other target"
    )
    from_: Moment = Field(default_factory=int, alias="from", description="from this time on (inclusive)")
    to: Moment = Field(default_factory=int, description="before this time (exclusive)")

    def wanted(self) -> AuditFilter:
        """Return the filter."""
        return AuditFilter(self.who, self.action, self.target, self.from_, self.to)


async def list_(call: Call) -> Answer:
    """List lines, newest first."""
    before = ""
    if call.query.cursor:
        (before,) = decode_cursor(call.query.cursor, LIST, 1)
        if not is_place(before):
            raise bad_cursor()
    page = await call.console.audit.kept.page(before, call.query.limit, call.query.wanted())
    more = encode_cursor(LIST, page.next) if page.next is not None else None
    return Answer({"items": [_document(line) for line in page.lines], "next": more})


def _document(line: AuditLine) -> dict[str, Any]:
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
