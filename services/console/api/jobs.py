"""Redrives and purges under way, and those that ended lately."""

from __future__ import annotations

from services.console.cursor import decode_cursor, encode_cursor
from services.console.operations import Answer, Call

LIST = "jobs"


async def list_(call: Call) -> Answer:
    """The newest first."""
    jobs = await call.console.jobs.look()
    if call.query.cursor:
        (last,) = decode_cursor(call.query.cursor, LIST, 1)
        ids = [job["id"] for job in jobs]
        jobs = jobs[ids.index(last) + 1 :] if last in ids else []
    page = jobs[: call.query.limit]
    more = encode_cursor(LIST, page[-1]["id"]) if len(jobs) > len(page) else None
    return Answer({"items": page, "next": more})


async def show(call: Call) -> Answer:
    return Answer(await call.console.jobs.find(call.path["id"]))


async def cancel(call: Call) -> Answer:
    """What was moved stays moved."""
    job = await call.console.jobs.find(call.path["id"])
    call.detail["queue"] = job["queue"]
    return Answer(await call.console.jobs.cancel(job["id"]))
