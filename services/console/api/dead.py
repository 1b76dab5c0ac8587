"""Dead letters: look, bring back, remove."""

from __future__ import annotations

import base64
import time
from typing import Any
from urllib.parse import quote

from pydantic import Field

from services.console.api.messages import OCTETS, Octets
from services.console.cursor import decode_cursor, encode_cursor
from services.console.etags import must_match, queue_etag
from services.console.jobs import Job, Kind
from services.console.moments import moment, moment_or_none
from services.console.operations import Answer, Call, plain
from services.console.paging import Paged
from services.console.problems import Problem
from services.console.selection import LONGEST_ORIGIN, MOST_REASONS, Body, LetterFilter, Reason, count
from services.store import DeadLetter, DeadLetters, Filter, Queue
from services.store.dead import PAGE, WHOLE, Looked
from services.store.duration import Duration

LIST = "dead"
LOOK_S = 0.015  # a page that takes longer is answered as far as it got; `next` goes on


class DeadQuery(Paged):
    reason: tuple[Reason, ...] = Field(
        (), max_length=MOST_REASONS, description="what they died of; repeatable"
    )
    origin: str = Field("", max_length=LONGEST_ORIGIN, description="a part of their origin")
    older_than: Duration = Field(0, description="dead for so long, as in 30m")
    body: Body = ""
    octets: Octets = OCTETS

    def wanted(self) -> Filter:
        """Raises Problem."""
        return LetterFilter.model_construct(
            reasons=self.reason, origin=self.origin, older_than=self.older_than, body=self.body
        ).wanted()


async def list_(call: Call) -> Answer:
    """Oldest first."""
    queue, letters = await call.console.letters(call.path["name"])
    wanted = call.query.wanted()
    after = ""
    if call.query.cursor:
        qid, after = decode_cursor(call.query.cursor, LIST, 2)
        if qid != queue.qid:
            raise Problem(
                400, "bad_cursor", "this cursor is of a queue that was deleted: begin anew without it"
            )
    now_ms = await call.console.store.now_ms()
    found = await _page(letters, wanted, after, call.query, now_ms)
    more = None if found.is_last else encode_cursor(LIST, queue.qid, found.last)
    return Answer({"items": [_told(letter, call.query.octets) for letter in found.letters], "next": more})


async def _page(letters: DeadLetters, wanted: Filter, after: str, query: DeadQuery, now_ms: int) -> Looked:
    """In steps that the store does not feel, as many as there is time for."""
    page: list[DeadLetter] = []
    end = time.monotonic() + LOOK_S
    while True:
        try:
            looked = await letters.look(
                after, wanted, now_ms, min(query.limit - len(page), PAGE), query.octets
            )
        except ValueError:
            raise Problem(400, "bad_cursor", "this is no cursor of this list") from None
        page += looked.letters
        after = looked.last or after
        if looked.is_last or len(page) == query.limit or time.monotonic() > end:
            return Looked(page, after, looked.is_last)


async def show(call: Call) -> Answer:
    return Answer(_told(await _find(call), WHOLE))


async def body(call: Call) -> Answer:
    """A file to be kept: whatever it is, no browser takes it for a page."""
    letter = await _find(call)
    name = f"{call.path['name']}-{letter.id}.bin"
    named = quote(name.encode("utf-8", "surrogateescape"), safe="")
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{named}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Answer(octets=letter.body, headers=headers)


async def _find(call: Call) -> DeadLetter:
    queue, letters = await call.console.letters(call.path["name"])
    letter = await letters.find(call.path["id"])
    if letter is None:
        text = f"queue {queue.name!r} has no dead letter {call.path['id']!r}"
        raise Problem(404, "letter_unknown", text)
    return letter


def _told(letter: DeadLetter, octets: int) -> dict[str, Any]:
    shown = letter.body if octets == WHOLE else letter.body[:octets]
    return {
        "id": letter.id,
        "reason": letter.reason,
        "error": letter.error,
        "origin": letter.origin,
        "acquired": letter.acquired,
        "failed": letter.failed,
        "redriven": letter.redriven,
        "note": letter.note,
        "enqueuedAt": moment(letter.enqueued_ms),
        "firstAt": moment_or_none(letter.first_ms),
        "lastAt": moment_or_none(letter.last_ms),
        "diedAt": moment(letter.died_ms),
        "bytes": letter.size,
        "attributes": plain(letter.attributes),
        "bodyBase64": base64.b64encode(shown).decode(),
        "truncated": len(shown) < letter.size,
    }


async def redrive(call: Call) -> Answer:
    queue, letters = await call.console.letters(call.path["name"])
    goal = queue
    if call.body.target is not None:
        goal = await call.console.store.find(call.body.target)
        letters.check_target(goal)
    return await _begin(call, queue, letters, goal, Kind.REDRIVE, call.body.rate or 0)


async def purge(call: Call) -> Answer:
    queue, letters = await call.console.letters(call.path["name"])
    if not call.body.dry_run:
        must_match(call.headers, queue_etag(queue))
    return await _begin(call, queue, letters, queue, Kind.PURGE, 0)


async def _begin(
    call: Call, queue: Queue, letters: DeadLetters, goal: Queue, kind: Kind, rate: int
) -> Answer:
    wanted = call.body.wanted()
    if call.body.dry_run:
        call.detail["dryRun"] = True
        return Answer(await count(letters, wanted))
    began_ms = await call.console.store.now_ms()
    job = call.console.jobs.start(Job(kind, queue, goal, call.who, wanted, rate, began_ms))
    call.detail.update(job=job.id, selection=call.body.model_dump(mode="json", exclude_defaults=True))
    call.detail["selection"].pop("ids", None)
    return Answer(job.told(), 202, {"Location": f"/api/v1/jobs/{job.id}"})
