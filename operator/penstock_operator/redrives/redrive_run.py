"""Run one Redrive: move dead letters a page at a time, at its rate limit.

It can be interrupted anywhere and resumed: the selection is fixed at the start (`startedAt`), the store counts moved
letters in the same atomic step that moves them, and the rest is searched again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from penstock_operator.documents.declared import owning_key
from penstock_operator.documents.redrive_spec import RedriveSpec
from services.store import DeadLetters, Queue, Store
from services.store.deadletters import Pace
from services.store.model import MessageTooLarge, OutcomeUnknown, QueueUnknown, StoreError

BLOCKED_S = 2.0  # before a target that accepted nothing is tried again


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a Redrive, as in its status. Times are ms since 1970 by the store's clock."""

    began_ms: int
    matched: int
    moved: int
    remaining: int
    source: str = ""  # id of the source queue, which has the count; a recreated queue has none
    waits_for: str = ""  # why nothing is moved at present

    def fields(self) -> dict[str, Any]:
        """Return the fields of the status."""
        began = datetime.fromtimestamp(self.began_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return {
            "startedAt": began.replace("+00:00", "Z"),
            "sourceId": self.source,
            "matched": self.matched,
            "moved": self.moved,
            "remaining": self.remaining,
        }


class UnreadableStatus(StoreError):
    """The status of the Redrive was not written by an operator."""


def progress_of(status: Mapping[str, Any]) -> Progress | None:
    """Return the progress in a status; None before the start. Raises UnreadableStatus."""
    if "startedAt" not in status:
        return None
    try:
        began = datetime.fromisoformat(status["startedAt"]).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableStatus(
            f"status.startedAt is {status['startedAt']!r}, which is not a valid time: the progress is unknown; "
            "create another Redrive for the remaining dead letters"
        ) from error
    began_ms = round(began.timestamp() * 1000)
    matched, moved, remaining = (int(status.get(name, 0)) for name in ("matched", "moved", "remaining"))
    return Progress(began_ms, matched, moved, remaining, str(status.get("sourceId", "")))


Report = Callable[[Progress], Awaitable[None]]


class Missing(QueueUnknown):
    """A queue of the Redrive does not exist."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Foreign(StoreError):
    """The queue belongs to another namespace."""


class SourceRecreated(StoreError):
    """The source queue was recreated since the start."""


class RedriveRun:
    """One run of a Redrive."""

    def __init__(self, store: Store, spec: RedriveSpec, namespace: str, run: str, report: Report) -> None:
        """Prepare the run.

        namespace: the only one whose queues it may use, besides those without a resource. run: the id under which the
        store counts. report: awaited with the progress of each step.
        """
        self._store = store
        self._namespace = namespace
        self._spec = spec
        self._run = run
        self._report = report

    async def go(self, before: Progress | None) -> Progress:
        """Run from `before` to the end and return the final progress. Can be repeated after a StoreError.

        Raises Missing for a queue that does not exist, Foreign for a queue of another namespace, DomainMismatch for a
        target in another domain, SourceRecreated for a recreated source, MessageTooLarge for a message that the target
        never accepts, ReasonUnknown for an unknown reason in the filter.
        """
        source = await self._source(before)
        target = await self._queue("target", self._spec.target) if self._spec.target else source
        letters = DeadLetters(self._store.get_domain(source.domain), source)
        letters.check_target(target)  # also for a dry run
        progress = before or await self._begin(source, letters)
        await self._report(progress)
        if self._spec.dry_run:
            return progress
        progress = await self._move(letters, target, progress)
        if progress.moved < progress.matched:
            await self._source(progress)  # a deleted source also has no dead letters left
        return replace(progress, remaining=0, waits_for="")

    async def forget(self) -> None:
        """Delete the count in the store after the end. Raises StoreError."""
        source = await self._store.catalogue.find(self._spec.source)
        await DeadLetters(self._store.get_domain(source.domain), source).forget_run(self._run)

    async def _source(self, progress: Progress | None) -> Queue:
        source = await self._queue("source", self._spec.source)
        if progress is not None and progress.source not in ("", source.qid):
            raise SourceRecreated(
                f"source {source.name!r} was deleted with its dead letters and recreated during the redrive: create "
                "another Redrive for its new dead letters"
            )
        return source

    async def _queue(self, place: str, name: str) -> Queue:
        """Find a queue of the Redrive. place: source or target. Raises Missing, Foreign."""
        try:
            queue = await self._store.catalogue.find(name)
        except QueueUnknown as error:
            raise Missing(name, f"{place}: {error}") from error
        owner = owning_key(queue.owner)
        if owner is not None and owner[0] != self._namespace:
            raise Foreign(
                f"queue {name!r} belongs to a Queue in namespace {owner[0]!r}: create the Redrive there"
            )
        return queue

    async def _begin(self, source: Queue, letters: DeadLetters) -> Progress:
        await letters.check_reasons(self._spec.filter.reasons)
        began_ms = await self._store.now_ms()
        matched = 0
        async for _ in letters.matching(self._spec.letter_filter(began_ms), octets=0):
            matched += 1
        return Progress(began_ms, matched, 0, matched, source.qid)

    async def _move(self, letters: DeadLetters, target: Queue, progress: Progress) -> Progress:
        """Move all matching letters."""
        pace = Pace(self._spec.rate)
        progress = self._after(progress, await self._moved(letters, progress), 0)
        while True:
            left = 0
            async for page in letters.pages(self._spec.letter_filter(progress.began_ms), pace.step):
                left += len(page)
                progress = await self._page(letters, target, page, progress, pace)
            if not left:
                return progress

    async def _page(
        self, letters: DeadLetters, target: Queue, page: list[str], progress: Progress, pace: Pace
    ) -> Progress:
        while page:
            await pace.wait(len(page))
            stopped: StoreError | None = None
            try:
                redriven = await letters.redrive(page, target, self._run)
                done, stopped = redriven.moved + redriven.missing, redriven.stopped
            except OutcomeUnknown:
                done = len(page)  # letters that were not moved are found by the next round
            except QueueUnknown:
                await self._source(progress)
                raise Missing(target.name, f"target {target.name!r} was deleted during the redrive") from None
            moved = await self._moved(letters, progress)
            waits_for = "" if stopped is None else f"target {target.name!r}: {stopped}"
            progress = replace(self._after(progress, moved, done), waits_for=waits_for)
            await self._report(progress)
            if isinstance(stopped, MessageTooLarge):
                raise MessageTooLarge(waits_for)
            page = page[done:]
            if waits_for:
                await asyncio.sleep(BLOCKED_S)
        return progress

    @staticmethod
    def _after(progress: Progress, moved: int, done: int) -> Progress:
        """Update the progress. The store's count includes letters moved before a crash, which the status may lack."""
        remaining = min(progress.remaining - done, progress.matched - moved)
        return replace(progress, moved=moved, remaining=max(0, remaining))

    async def _moved(self, letters: DeadLetters, progress: Progress) -> int:
        """Return how many letters were moved; a deleted source has lost its count."""
        return max(progress.moved, await letters.moved_by(self._run))
