"""Waiting until a peer has confirmed a message: what `penstock rqp send --wait` ends with."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.message import origin
from services.cli.terminal.output import Output
from services.store import DeadLetters, Queue, Store, StoreError, StoreUnavailable
from services.store.deadletters import DeliveryResult, DeliveryStatus, DeliveryTracker
from services.store.model import DatasetLost, NotInitialised, Protocol, QueuePaused, QueueUnknown

CARRIER = "rqp-"  # how sessions of the edges begin that carry messages away
SHORTEST_S, LONGEST_S = 0.02, 0.5  # between two questions; messages that get through mostly do at once
NEWS_S = 1.0  # how often it is looked why nothing comes
LAST_S = 1.0  # for all that is asked after the time is over
UNCARRIED_S = 30.0  # without an edge for the queue; one that restarts, or takes over, needs less


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing comes: a label for programs, and words."""

    label: str = ""
    text: str = ""


NOT_CARRIED = Trouble("not_carried", "no edge carries its messages away: start `penstock serve rqp`")
NOT_CARRIED_BY_CAST = Trouble(
    NOT_CARRIED.label,
    f"{NOT_CARRIED.text}; one that runs and has no findreceiver_port says so in its log",
)


class Confirmation:
    """Of one message that is put into a transmission queue; an uncertain one is done when it is sent."""

    def __init__(self, store: Store, output: Output, queue: Queue, is_certain: bool) -> None:
        self._store = store
        self._output = output
        self._queue = queue
        self._watch = DeliveryTracker(store.open_domain(queue.domain), queue)
        self._wanted = "confirmed" if is_certain else "sent"
        self._trouble = Trouble()
        self._errors: int | None = None  # that the sending agent had reported before
        self._uncarried_since: float | None = None
        self._is_patient = False  # waits whatever it reports

    async def of(self, record: bytes, timeout_s: float | None) -> None:
        """Puts it in and waits. Raises StoreError if it is not stored, Failure for every end but the good one."""
        where = f"it may be in {self._queue.name}"
        self._is_patient = timeout_s is not None
        try:
            await self._watch.put(record, origin())
            where = f"it was not {self._wanted} yet, and stays in {self._queue.name}"
            fate = await self._fate(timeout_s)
        except asyncio.CancelledError:
            self._output.note(f"not waited for: {where}")
            raise
        finally:
            await self._close()
        if fate is None:
            raise self._overdue(timeout_s or 0.0)
        if fate.status is DeliveryStatus.DEAD:
            raise await self._dead(fate)
        if fate.status is DeliveryStatus.EMPTIED:
            text = f"{self._queue.name} was emptied, and the message is gone for good"
            raise self._failed("emptied", "emptied", text)
        if not fate.session.startswith(CARRIER):
            raise self._failed(
                "taken", "taken", f"somebody else took it out of {self._queue.name}: {fate.session}"
            )
        self._tell(self._wanted)
        self._output.line(f"{self._wanted}, and out of {self._queue.name}")

    # until it has a fate

    async def _fate(self, timeout_s: float | None) -> DeliveryResult | None:
        """None: it had none in time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ended()
        except TimeoutError:
            return await self._last_look()

    async def _ended(self) -> DeliveryResult:
        now = asyncio.get_running_loop().time
        pause_s, news_at = SHORTEST_S, now() + NEWS_S
        with suppress(StoreError):
            self._has_failed(await self._store.listing.stats(self._queue))  # before: not with this message
        while (fate := await self._look()) is None:
            if now() >= news_at:
                await self._look_why()
                news_at = now() + NEWS_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)
        return fate

    async def _last_look(self) -> DeliveryResult | None:
        """It may have ended at the last moment; if not, this is why. A store that is silent is not waited for."""
        try:
            async with asyncio.timeout(LAST_S):
                fate = await self._look()
                if fate is None and not isinstance(self._trouble, _Away):
                    await self._look_why()
                return fate
        except TimeoutError:
            self._trouble = _Away(StoreUnavailable.reason, "the store does not answer")
            return None

    async def _close(self) -> None:
        """A store that is not there forgets by itself that somebody has waited."""
        if not isinstance(self._trouble, _Away):
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await self._watch.close()

    async def _look(self) -> DeliveryResult | None:
        """Raises StoreError, but not for a store that may be on its way back: the message is in it."""
        try:
            fate = await self._watch.poll()
        except (DatasetLost, NotInitialised):
            raise
        except StoreUnavailable as error:
            self._say(_Away(error.reason, str(error)))
            self._uncarried_since = None  # edges come back after it
            return None
        if isinstance(self._trouble, _Away):
            self._trouble = Trouble()
        return fate if fate.status is not DeliveryStatus.WAITS else None

    async def _look_why(self) -> None:
        with suppress(StoreUnavailable):
            try:
                stats = await self._store.listing.stats(self._queue)
                self._say(await self._why(stats))
                await self._expect_an_edge(
                    bool(stats["owned_by"]) or self._trouble.label == QueuePaused.reason
                )
            except QueueUnknown:
                if await self._look() is None:
                    text = f"queue {self._queue.name!r} was deleted, and the message with it"
                    raise self._failed("deleted", QueueUnknown.reason, text, Exit.NOT_FOUND) from None

    def _has_failed(self, stats: dict[str, Any]) -> bool:
        """Whether the sending agent has reported an error since this was asked before (rqp_mca.md 3.1)."""
        before, self._errors = self._errors, stats["send_errors"]
        return before is not None and self._errors > before

    async def _why(self, stats: dict[str, Any]) -> Trouble:
        has_failed = self._has_failed(stats)
        if stats["condition"]:
            label, _, text = stats["condition"].partition(": ")
            if has_failed and not self._is_patient and await self._look() is None:
                raise self._erred(Trouble(label, text))
            return Trouble(label, text)
        if stats["owned_by"]:
            return Trouble()
        spec = (await self._store.catalogue.find(self._queue.name)).spec
        if spec.paused:
            return Trouble(QueuePaused.reason, f"queue {self._queue.name!r} is paused")
        is_cast = spec.remote is not None and spec.remote.protocol is Protocol.CAST
        return NOT_CARRIED_BY_CAST if is_cast else NOT_CARRIED

    async def _expect_an_edge(self, is_there: bool) -> None:
        """Raises Failure if none has owned the queue for so long: whoever waits would wait for ever."""
        now = asyncio.get_running_loop().time()
        if is_there:
            self._uncarried_since = None
        elif self._uncarried_since is None:
            self._uncarried_since = now
        elif (
            not self._is_patient and now - self._uncarried_since >= UNCARRIED_S and await self._look() is None
        ):
            raise self._erred(self._trouble if self._trouble.label == NOT_CARRIED.label else NOT_CARRIED)

    def _say(self, trouble: Trouble) -> None:
        """Once; that a store is away in whatever words, which change with each question."""
        is_known = trouble == self._trouble or (
            isinstance(trouble, _Away) and isinstance(self._trouble, _Away)
        )
        if not is_known and trouble.text:
            self._output.note(f"waiting: {trouble.label}: {trouble.text}")
        self._trouble = trouble

    # the end

    def _tell(self, state: str, reason: str = "") -> None:
        if self._output.as_json:
            because = {"reason": reason} if reason else {}
            self._output.record({"queue": self._queue.name, "state": state, **because})

    def _failed(self, state: str, label: str, text: str, exit: Exit = Exit.REFUSED) -> Failure:
        self._tell(state, label)
        return Failure(exit, label, text)

    def _overdue(self, timeout_s: float) -> Failure:
        """Nobody knows whether it will be; but where it is, as long as the store answers."""
        trouble, late = self._trouble, f"not {self._wanted} within {timeout_s:g} s"
        if isinstance(trouble, _Away):
            text = f"stored in {self._queue.name}, but {trouble.text}"
            return self._failed("unknown", trouble.label, text, Exit.UNKNOWN)
        why = f"{trouble.text}; " if trouble.text else ""
        text = f"{why}{late}: the message is still in {self._queue.name}"
        return self._failed("waits", trouble.label or "timeout", text, Exit.UNKNOWN)

    def _erred(self, trouble: Trouble) -> Failure:
        """It is tried again and again; whoever sends one message has something else to do."""
        text = f"{trouble.text}: the message waits in {self._queue.name} and will still be sent"
        return self._failed("waits", trouble.label, text, Exit.UNKNOWN)

    async def _dead(self, fate: DeliveryResult) -> Failure:
        letters = DeadLetters(self._store.get_domain(self._queue.domain), self._queue)
        error = ""
        with suppress(StoreError):  # what is known already is told without it
            letter = await letters.find(fate.dead_letter_id)
            error = f": {letter.error}" if letter is not None and letter.error else ""
        text = f"it is among the dead letters of {self._queue.name}, not in it any more ({fate.dead_letter_id}){error}"
        return self._failed("dead", fate.reason, text)


class _Away(Trouble):
    """The store cannot be asked."""
