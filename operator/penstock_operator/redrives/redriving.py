"""One Redrive on its way: dead letters go back a page at a time, no faster than it says.

It may end anywhere and be begun again: what is meant was fixed when it first began (`startedAt`), what has been moved
the store counts in the step that moves it, and what is left is looked for anew.
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

BLOCKED_S = 2.0  # before the target is tried again that took nothing


@dataclass(frozen=True, slots=True)
class Progress:
    """The status of a Redrive. Times are ms since 1970 of the store's clock."""

    began_ms: int
    matched: int
    moved: int
    remaining: int
    source: str = ""  # id of the queue that counts it: one that is made anew has counted nothing
    waits_for: str = ""  # why nothing is moved now

    def fields(self) -> dict[str, Any]:
        began = datetime.fromtimestamp(self.began_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return {
            "startedAt": began.replace("+00:00", "Z"),
            "sourceId": self.source,
            "matched": self.matched,
            "moved": self.moved,
            "remaining": self.remaining,
        }


class Illegible(StoreError):
    """the status of the Redrive is none that an operator wrote"""


def progress_of(status: Mapping[str, Any]) -> Progress | None:
    """As the status has it; None before the beginning. Raises Illegible."""
    if "startedAt" not in status:
        return None
    try:
        began = datetime.fromisoformat(status["startedAt"]).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Illegible(
            f"status.startedAt is {status['startedAt']!r}, which no operator writes: where it was cannot be known; "
            "apply another Redrive for what is dead still"
        ) from error
    began_ms = round(began.timestamp() * 1000)
    matched, moved, remaining = (int(status.get(name, 0)) for name in ("matched", "moved", "remaining"))
    return Progress(began_ms, matched, moved, remaining, str(status.get("sourceId", "")))


Tell = Callable[[Progress], Awaitable[None]]


class Missing(QueueUnknown):
    """a queue of the Redrive is not there"""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Foreign(StoreError):
    """the queue belongs to another namespace"""


class MadeAnew(StoreError):
    """the source is not the queue any more from which this began"""


class Redriving:
    def __init__(self, store: Store, spec: RedriveSpec, namespace: str, run: str, tell: Tell) -> None:
        """namespace: whose queues it may touch, and those of nobody's. run: under which the store counts.

        tell: is told of each step, and may wait.
        """
        self._store = store
        self._namespace = namespace
        self._spec = spec
        self._run = run
        self._tell = tell

    async def go(self, before: Progress | None) -> Progress:
        """From where it was to the end. Raises StoreError: nothing is lost by beginning again.

        Raises Missing for a queue that is not there, Foreign for a queue of another namespace, DomainMismatch for a
        target of another domain, MadeAnew for a source
        that is another one than before, MessageTooLarge for a message that the target never takes, ReasonUnknown for a
        filter that names no reason.
        """
        source = await self._source(before)
        target = await self._queue("target", self._spec.target) if self._spec.target else source
        letters = DeadLetters(self._store.get_domain(source.domain), source)
        letters.check_target(target)  # also where nothing moves
        progress = before or await self._begin(source, letters)
        await self._tell(progress)
        if self._spec.dry_run:
            return progress
        progress = await self._move(letters, target, progress)
        if progress.moved < progress.matched:
            await self._source(progress)  # a queue that is gone has no dead letters either
        return replace(progress, remaining=0, waits_for="")

    async def forget(self) -> None:
        """The end was told, or nobody is left to be told: the store need not count any more. Raises StoreError."""
        source = await self._store.catalogue.find(self._spec.source)
        await DeadLetters(self._store.get_domain(source.domain), source).forget_run(self._run)

    async def _source(self, progress: Progress | None) -> Queue:
        source = await self._queue("source", self._spec.source)
        if progress is not None and progress.source not in ("", source.qid):
            raise MadeAnew(
                f"source {source.name!r} was deleted on the way, with its dead letters, and made anew: apply another "
                "Redrive for what has died there since"
            )
        return source

    async def _queue(self, place: str, name: str) -> Queue:
        """place: source or target."""
        try:
            queue = await self._store.catalogue.find(name)
        except QueueUnknown as error:
            raise Missing(name, f"{place}: {error}") from error
        owner = owning_key(queue.owner)
        if owner is not None and owner[0] != self._namespace:
            raise Foreign(
                f"queue {name!r} belongs to a Queue in namespace {owner[0]!r}: apply the Redrive there"
            )
        return queue

    async def _begin(self, source: Queue, letters: DeadLetters) -> Progress:
        await letters.check_reasons(self._spec.filter.reasons)
        began_ms = await self._store.now_ms()
        matched = 0
        async for _ in letters.matching(self._spec.wanted(began_ms), octets=0):
            matched += 1
        return Progress(began_ms, matched, 0, matched, source.qid)

    async def _move(self, letters: DeadLetters, target: Queue, progress: Progress) -> Progress:
        """Until none is left that is meant."""
        pace = Pace(self._spec.rate)
        progress = self._after(progress, await self._moved(letters, progress), 0)
        while True:
            left = 0
            async for page in letters.pages(self._spec.wanted(progress.began_ms), pace.step):
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
                done = len(page)  # whatever stayed is found by the next round
            except QueueUnknown:
                await self._source(progress)
                raise Missing(target.name, f"target {target.name!r} was deleted on the way") from None
            moved = await self._moved(letters, progress)
            waits_for = "" if stopped is None else f"target {target.name!r}: {stopped}"
            progress = replace(self._after(progress, moved, done), waits_for=waits_for)
            await self._tell(progress)
            if isinstance(stopped, MessageTooLarge):
                raise MessageTooLarge(waits_for)
            page = page[done:]
            if waits_for:
                await asyncio.sleep(BLOCKED_S)
        return progress

    @staticmethod
    def _after(progress: Progress, moved: int, done: int) -> Progress:
        """The store knows of letters that were moved before we were killed, and our status does not."""
        remaining = min(progress.remaining - done, progress.matched - moved)
        return replace(progress, moved=moved, remaining=max(0, remaining))

    async def _moved(self, letters: DeadLetters, progress: Progress) -> int:
        """A source that was deleted meanwhile has no count any more."""
        return max(progress.moved, await letters.moved_by(self._run))
