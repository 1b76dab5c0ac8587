"""Handlers of jobs."""

from __future__ import annotations

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.core.route import Answer, Call
from services.console.jobs.job import PLACE, place_of

LIST = "jobs"


async def list_(call: Call) -> Answer:
    """List jobs, newest first."""
    jobs = await call.console.jobs.poll()
    if call.query.cursor:
        last = decode_cursor(call.query.cursor, LIST, len(PLACE))
        jobs = [job for job in jobs if place_of(job) < last]  # even if that job is forgotten
    page = jobs[: call.query.limit]
    more = encode_cursor(LIST, *place_of(page[-1])) if len(jobs) > len(page) else None
    return Answer({"items": page, "next": more})


async def show(call: Call) -> Answer:
    """Show a job."""
    return Answer(await call.console.jobs.find(call.path["id"]))


async def cancel(call: Call) -> Answer:
    """Cancel a job; what was moved stays moved."""
    job = await call.console.jobs.find(call.path["id"])
    call.detail["queue"] = job["queue"]
    return Answer(await call.console.jobs.cancel(job["id"]))
