"""Handler of purging ready messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.console.contract.etags import has_changed, must_match
from services.console.contract.shape import Shape
from services.console.core.route import Answer, Call
from services.console.jobs.job import Job, Kind
from services.store import Filter, Queue
from services.store.deadletters import PurgePreview, preview_purge

COUNTED = r"[0-9a-z]{1,40} [0-9]{1,20}-[0-9]{1,20} [0-9]{1,15}"  # queue ID, last message, number
Until = Annotated[str, Field(pattern=f"^({COUNTED})?$", max_length=100)]


class PurgeReady(Shape):
    """A purge of ready messages; messages in flight and later ones stay."""

    dry_run: bool = Field(False, description="only count")
    until: Until = Field("", description="value returned by a dry run: messages added after it stay")


async def purge(call: Call) -> Answer:
    """Start a purge, or count for a dry run."""
    console = call.console
    queue, unreadable = await console.store.catalogue.find_leniently(call.path["name"])
    etag = await console.etag(queue, unreadable)
    if not call.body.dry_run:
        must_match(call.headers, etag)
    found = await preview_purge(console.store.get_domain(queue.domain), queue)
    counted = _counted(call.body.until, queue, found, etag) if call.body.until else found
    if call.body.dry_run:
        call.detail["dryRun"] = True
        until = f"{queue.qid} {counted.until} {counted.messages}"
        return Answer({"matched": counted.messages, "inFlight": counted.in_flight, "until": until})
    began_ms = await console.store.now_ms()
    job = Job(Kind.EMPTY, queue, queue, call.caller, Filter(), 0, began_ms, until=counted.until)
    job.matched = counted.messages
    await console.jobs.start(job)
    call.detail["job"] = job.id
    return Answer(job.document(), 202, {"Location": f"/api/v1/jobs/{job.id}"})


def _counted(until: str, queue: Queue, found: PurgePreview, etag: str) -> PurgePreview:
    """Return what the dry run counted, at most what is ready now. Raises Problem if the queue was replaced."""
    qid, place, messages = until.split(" ")
    if qid != queue.qid:
        raise has_changed(etag)
    return PurgePreview(place, min(found.messages, int(messages)), found.in_flight)
