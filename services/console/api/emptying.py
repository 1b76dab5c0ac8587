"""A queue's ready messages, removed for good: a job."""

from __future__ import annotations

from pydantic import Field

from services.console.etags import must_match
from services.console.job import Job, Kind
from services.console.operations import Answer, Call, Shape
from services.store import Filter


class PurgeReady(Shape):
    """All that are ready; what is given out, and what is put in meanwhile, stays."""

    dry_run: bool = Field(False, description="only say how many")


async def purge(call: Call) -> Answer:
    console = call.console
    queue, unreadable = await console.store.find_leniently(call.path["name"])
    if call.body.dry_run:
        call.detail["dryRun"] = True
        figures = await console.store.stats(queue)
        return Answer({"matched": figures["ready"], "inFlight": figures["in_flight"]})
    must_match(call.headers, await console.etag(queue, unreadable))
    began_ms = await console.store.now_ms()
    job = await console.jobs.start(Job(Kind.EMPTY, queue, queue, call.who, Filter(), 0, began_ms))
    call.detail["job"] = job.id
    return Answer(job.told(), 202, {"Location": f"/api/v1/jobs/{job.id}"})
