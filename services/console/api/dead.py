"""Dead letters: look, bring back, remove."""

from __future__ import annotations

import base64
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pydantic import Field

from services.console.api.messages import OCTETS, READ_OCTETS, Octets
from services.console.audit.detail import chosen
from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.etags import must_match
from services.console.contract.moments import moment, moment_or_none
from services.console.contract.problems import Problem, problem_of
from services.console.contract.shape import plain
from services.console.core.route import Answer, Call
from services.console.http.memory_budget import Room
from services.console.jobs.job import Job, Kind
from services.console.queries.paging import Paged
from services.console.queries.selection import MOST_REASONS, Conditions, Reason, count
from services.store import DeadLetter, DeadLetters, Filter, Queue, StoreError, StoreUnavailable
from services.store.deadletters import PAGE, WHOLE, ScanStep
from services.store.model import OutcomeUnknown, QueueUnknown, is_id

LIST = "dead"
LOOK_S = 0.015  # a page that takes longer is answered as far as it got; `next` goes on


class DeadQuery(Paged, Conditions):
    reason: tuple[Reason, ...] = Field(
        (), max_length=MOST_REASONS, description="what they died of; repeatable"
    )
    octets: Octets = OCTETS

    def wanted(self) -> Filter:
        """Raises Problem."""
        return self.of_reasons(self.reason)


async def list_(call: Call) -> Answer:
    """Oldest first."""
    queue, letters, _ = await call.console.letters(call.path["name"])
    wanted = call.query.wanted()
    after = _place(call.query.cursor, queue) if call.query.cursor else ""
    now_ms = await call.console.store.get_domain(queue.domain).link.now_ms()
    async with _turn(call.console.room, call.query):
        found = await _page(letters, wanted, after, call.query, now_ms)
        call.share.take_encoded(sum(len(letter.body) for letter in found.letters))
    more = None if found.is_last else encode_cursor(LIST, queue.qid, found.last)
    return Answer({"items": [_told(letter, call.query.octets) for letter in found.letters], "next": more})


def _turn(room: Room, query: DeadQuery) -> AbstractAsyncContextManager[None]:
    """Where bodies are read of which nobody knows how large they are; who only looks waits for no pattern."""
    if query.body:
        return room.searching
    is_small = query.octets * query.limit <= READ_OCTETS
    return nullcontext() if is_small else room.finding


def _place(cursor: str, queue: Queue) -> str:
    """The id behind which it goes on. Raises Problem."""
    qid, after = decode_cursor(cursor, LIST, 2)
    if qid != queue.qid:
        raise Problem(400, "bad_cursor", "this cursor is of a queue that was deleted: begin anew without it")
    if after and not is_id(after):
        raise Problem(400, "bad_cursor", "this is no cursor of this list")
    return after


async def _page(letters: DeadLetters, wanted: Filter, after: str, query: DeadQuery, now_ms: int) -> ScanStep:
    """In steps that the store does not feel, as many as there is time, and room, for."""
    page: list[DeadLetter] = []
    octets = 0
    end = time.monotonic() + LOOK_S
    while True:
        most = min(query.limit - len(page), PAGE)
        looked = await letters.scan(after, wanted, now_ms, most, query.octets, LOOK_S)
        some = [_cut(each, query.octets) for each in looked.letters]
        page += some
        octets += sum(len(each.body) for each in some)
        after = looked.last or after
        is_full = len(page) == query.limit or octets >= READ_OCTETS
        if looked.is_last or is_full or time.monotonic() > end:
            return ScanStep(page, after, looked.is_last)


def _cut(letter: DeadLetter, octets: int) -> DeadLetter:
    """Without the rest of a body that was read for a pattern."""
    return letter if len(letter.body) <= octets else replace(letter, body=letter.body[:octets])


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
    queue, letters, _ = await call.console.letters(call.path["name"])
    async with call.console.room.finding:
        letter = await letters.find(call.path["id"])
        if letter is not None:
            call.share.take(letter.size)
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
    queue, letters, _ = await call.console.letters(call.path["name"])
    goal = queue
    if call.body.target is not None:
        goal = await call.console.store.catalogue.find(call.body.target)
    await _must_take(letters, goal)
    return await _begin(call, queue, letters, goal, Kind.REDRIVE, call.body.rate or 0)


async def _must_take(letters: DeadLetters, goal: Queue) -> None:
    """Also of a dry run: what it counts would go nowhere. Raises Problem."""
    try:
        await letters.try_target(goal)
    except (QueueUnknown, StoreUnavailable, OutcomeUnknown):  # these say nothing of the target
        raise
    except StoreError as error:
        told = problem_of(error)
        text = f"queue {goal.name!r} takes nothing now: {error}"
        raise Problem(told.status, told.label, text, headers=told.headers) from error


async def purge(call: Call) -> Answer:
    queue, letters, unreadable = await call.console.letters(call.path["name"])
    if not call.body.dry_run:
        must_match(call.headers, await call.console.etag(queue, unreadable))
    return await _begin(call, queue, letters, queue, Kind.PURGE, 0)


async def _begin(
    call: Call, queue: Queue, letters: DeadLetters, goal: Queue, kind: Kind, rate: int
) -> Answer:
    wanted = call.body.wanted()
    await letters.check_reasons(wanted.reasons)
    if call.body.dry_run:
        call.detail["dryRun"] = True
        with call.console.room.counting.one():
            return Answer(await _counted(call, letters, queue, wanted))
    began_ms = await call.console.store.now_ms()
    job = await call.console.jobs.start(Job(kind, queue, goal, call.who, wanted, rate, began_ms))
    call.detail.update(job=job.id, selection=call.body.model_dump(mode="json", exclude_defaults=True))
    if call.body.ids:
        call.detail["selection"]["ids"] = chosen(call.body.ids)
    if call.body.until:
        call.detail["selection"]["until"] = moment(min(call.body.until, began_ms))
    return Answer(job.told(), 202, {"Location": f"/api/v1/jobs/{job.id}"})


async def _counted(call: Call, letters: DeadLetters, queue: Queue, wanted: Filter) -> dict[str, Any]:
    """How many are meant, and until when they died: said again, that is who is moved, whatever dies meanwhile."""
    domain = call.console.store.get_domain(queue.domain)  # whose clock says when somebody died
    latest_ms = await domain.link.now_ms() - 1  # in this millisecond some may still die
    until_ms = min(call.body.until or latest_ms, latest_ms)
    # of all there are it may tell more than are moved, never fewer
    told = await count(letters, wanted if call.body.all else wanted.as_of(until_ms))
    return {**told, "until": moment(until_ms)}
