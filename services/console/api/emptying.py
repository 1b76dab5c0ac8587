"""A queue's ready messages, removed for good: a job."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.console.contract.etags import differs, must_match
from services.console.contract.shape import Shape
from services.console.core.route import Answer, Call
from services.console.jobs.job import Job, Kind
from services.store import Filter, Queue
from services.store.deadletters import PurgePreview, preview_purge

COUNTED = r"[0-9a-z]{1,40} [0-9]{1,20}-[0-9]{1,20} [0-9]{1,15}"  # of which queue, until where, how many
Until = Annotated[str, Field(pattern=f"^({COUNTED})?$", max_length=100)]


class PurgeReady(Shape):
    """All that are ready; what is given out, and what is put in meanwhile, stays."""

    dry_run: bool = Field(False, description="only say how many")
    until: Until = Field("", description="as a dry run told it: what came after that count stays")


async def purge(call: Call) -> Answer:
    console = call.console
    queue, unreadable = await console.store.catalogue.find_leniently(call.path["name"])
    etag = await console.etag(queue, unreadable)
    if not call.body.dry_run:
        must_match(call.headers, etag)
    found = await preview_purge(console.store.get_domain(queue.domain), queue)
    meant = _meant(call.body.until, queue, found, etag) if call.body.until else found
    if call.body.dry_run:
        call.detail["dryRun"] = True
        until = f"{queue.qid} {meant.until} {meant.messages}"
        return Answer({"matched": meant.messages, "inFlight": meant.in_flight, "until": until})
    began_ms = await console.store.now_ms()
    job = Job(Kind.EMPTY, queue, queue, call.who, Filter(), 0, began_ms, until=meant.until)
    job.matched = meant.messages
    await console.jobs.start(job)
    call.detail["job"] = job.id
    return Answer(job.told(), 202, {"Location": f"/api/v1/jobs/{job.id}"})


def _meant(until: str, queue: Queue, found: PurgePreview, etag: str) -> PurgePreview:
    """What was counted, as far as it may still be there. Raises Problem where another queue has the name by now."""
    qid, place, messages = until.split(" ")
    if qid != queue.qid:
        raise differs(etag)
    return PurgePreview(place, min(found.messages, int(messages)), found.in_flight)
