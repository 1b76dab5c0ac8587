"""Handlers of dead letters."""

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
from services.console.contract.cursor import bad_cursor, decode_cursor, encode_cursor
from services.console.contract.etags import must_match
from services.console.contract.moments import moment, moment_or_none
from services.console.contract.problems import Problem, problem_of
from services.console.contract.shape import plain
from services.console.core.route import Answer, Call
from services.console.http.memory_budget import MemoryBudget
from services.console.jobs.job import Job, Kind
from services.console.queries.paging import Paged
from services.console.queries.selection import MAX_REASONS, Conditions, Reason, count
from services.store import DeadLetter, DeadLetters, Filter, Queue, StoreError, StoreUnavailable
from services.store.deadletters import PAGE, WHOLE, ScanStep
from services.store.model import OutcomeUnknown, QueueUnknown, is_id

LIST = "dead"
PAGE_S = 0.015  # a page that takes longer is returned as it is; `next` continues


class DeadQuery(Paged, Conditions):
    """The query of dead letters."""

    reason: tuple[Reason, ...] = Field((), max_length=MAX_REASONS, description="reason of death; repeatable")
    octets: Octets = OCTETS

    def wanted(self) -> Filter:
        """Return the filter. Raises Problem for a bad pattern."""
        return self.of_reasons(self.reason)


async def list_(call: Call) -> Answer:
    """List dead letters, oldest first."""
    queue, letters, _ = await call.console.letters(call.path["name"])
    wanted = call.query.wanted()
    after = _place(call.query.cursor, queue) if call.query.cursor else ""
    now_ms = await call.console.store.get_domain(queue.domain).link.now_ms()
    async with _slot(call.console.budget, call.query):
        found = await _page(letters, wanted, after, call.query, now_ms)
        call.share.take_encoded(sum(len(letter.body) for letter in found.letters))
    more = None if found.is_last else encode_cursor(LIST, queue.qid, found.last)
    return Answer({"items": [_document(letter, call.query.octets) for letter in found.letters], "next": more})


def _slot(budget: MemoryBudget, query: DeadQuery) -> AbstractAsyncContextManager[None]:
    """Return the semaphore for searches by pattern or for reads of possibly large bodies."""
    if query.body:
        return budget.searching
    is_small = query.octets * query.limit <= READ_OCTETS
    return nullcontext() if is_small else budget.reading


def _place(cursor: str, queue: Queue) -> str:
    """Return the ID after which the page begins. Raises Problem."""
    qid, after = decode_cursor(cursor, LIST, 2)
    if qid != queue.qid:
        raise Problem(400, "bad_cursor", "the cursor is of a queue that was deleted: start again without it")
    if after and not is_id(after):
        raise bad_cursor()
    return after


async def _page(letters: DeadLetters, wanted: Filter, after: str, query: DeadQuery, now_ms: int) -> ScanStep:
    """Read a page in small steps, within the limits of time and octets."""
    page: list[DeadLetter] = []
    octets = 0
    end = time.monotonic() + PAGE_S
    while True:
        most = min(query.limit - len(page), PAGE)
        step = await letters.scan(after, wanted, now_ms, most, query.octets, PAGE_S)
        some = [_cut(each, query.octets) for each in step.letters]
        page += some
        octets += sum(len(each.body) for each in some)
        after = step.last or after
        is_full = len(page) == query.limit or octets >= READ_OCTETS
        if step.is_last or is_full or time.monotonic() > end:
            return ScanStep(page, after, step.is_last)


def _cut(letter: DeadLetter, octets: int) -> DeadLetter:
    """Shorten a body that was read as a whole for a pattern."""
    return letter if len(letter.body) <= octets else replace(letter, body=letter.body[:octets])


async def show(call: Call) -> Answer:
    """Show a dead letter."""
    return Answer(_document(await _find(call), WHOLE))


async def body(call: Call) -> Answer:
    """Download a body, with headers that keep browsers from rendering it."""
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
    async with call.console.budget.reading:
        letter = await letters.find(call.path["id"])
        if letter is not None:
            call.share.take(letter.size)
    if letter is None:
        text = f"queue {queue.name!r} has no dead letter {call.path['id']!r}"
        raise Problem(404, "letter_unknown", text)
    return letter


def _document(letter: DeadLetter, octets: int) -> dict[str, Any]:
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
    """Start a redrive, or count for a dry run."""
    queue, letters, _ = await call.console.letters(call.path["name"])
    target = queue
    if call.body.target is not None:
        target = await call.console.store.catalogue.find(call.body.target)
    await _check_target(letters, target)
    return await _begin(call, queue, letters, target, Kind.REDRIVE, call.body.rate or 0)


async def _check_target(letters: DeadLetters, target: Queue) -> None:
    """Check that the target accepts messages; dry runs validate it too. Raises Problem."""
    try:
        await letters.try_target(target)
    except (QueueUnknown, StoreUnavailable, OutcomeUnknown):  # not about the target
        raise
    except StoreError as error:
        problem = problem_of(error)
        text = f"target queue {target.name!r} does not accept messages: {error}"
        raise Problem(problem.status, problem.label, text, headers=problem.headers) from error


async def purge(call: Call) -> Answer:
    """Start a purge, or count for a dry run."""
    queue, letters, unreadable = await call.console.letters(call.path["name"])
    if not call.body.dry_run:
        must_match(call.headers, await call.console.etag(queue, unreadable))
    return await _begin(call, queue, letters, queue, Kind.PURGE, 0)


async def _begin(
    call: Call, queue: Queue, letters: DeadLetters, target: Queue, kind: Kind, rate: int
) -> Answer:
    wanted = call.body.wanted()
    await letters.check_reasons(wanted.reasons)
    if call.body.dry_run:
        call.detail["dryRun"] = True
        with call.console.budget.dry_runs.slot():
            return Answer(await _counted(call, letters, queue, wanted))
    began_ms = await call.console.store.now_ms()
    job = await call.console.jobs.start(Job(kind, queue, target, call.caller, wanted, rate, began_ms))
    call.detail.update(job=job.id, selection=call.body.model_dump(mode="json", exclude_defaults=True))
    if call.body.ids:
        call.detail["selection"]["ids"] = chosen(call.body.ids)
    if call.body.until:
        call.detail["selection"]["until"] = moment(min(call.body.until, began_ms))
    return Answer(job.document(), 202, {"Location": f"/api/v1/jobs/{job.id}"})


async def _counted(call: Call, letters: DeadLetters, queue: Queue, wanted: Filter) -> dict[str, Any]:
    """Count for a dry run; `until` limits a later redrive or purge to what was counted."""
    domain = call.console.store.get_domain(queue.domain)  # its clock sets times of death
    latest_ms = await domain.link.now_ms() - 1  # more may die in this millisecond
    until_ms = min(call.body.until or latest_ms, latest_ms)
    # for `all` the count may be too high, but not too low
    counted = await count(letters, wanted if call.body.all else wanted.as_of(until_ms))
    return {**counted, "until": moment(until_ms)}
