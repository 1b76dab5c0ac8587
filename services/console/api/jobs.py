"""Redrives and purges under way, and those that ended lately."""

from __future__ import annotations

from services.console.cursor import decode_cursor, encode_cursor
from services.console.operations import Answer, Call

LIST = "jobs"


async def list_(call: Call) -> Answer:
    """The newest first."""
    jobs = call.console.jobs.newest()
    if call.query.cursor:
        (last,) = decode_cursor(call.query.cursor, LIST, 1)
        ids = [job.id for job in jobs]
        jobs = jobs[ids.index(last) + 1 :] if last in ids else []
    page = jobs[: call.query.limit]
    more = encode_cursor(LIST, page[-1].id) if len(jobs) > len(page) else None
    return Answer({"items": [job.told() for job in page], "next": more})


async def show(call: Call) -> Answer:
    return Answer(call.console.jobs.find(call.path["id"]).told())


async def cancel(call: Call) -> Answer:
    """What was moved stays moved."""
    job = call.console.jobs.find(call.path["id"])
    call.detail["queue"] = job.queue.name
    await call.console.jobs.cancel(job)
    return Answer(job.told())
