"""Wait until a peer has confirmed a message, for `penstock rqp send --wait`."""

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

CARRIER = "rqp-"  # prefix of the sessions of edges that send transmission queues
SHORTEST_S, LONGEST_S = 0.02, 0.5  # between polls; most messages are confirmed at once
DIAGNOSIS_S = 1.0  # between checks of why there is no confirmation yet
LAST_S = 1.0  # for the requests made after the timeout
UNCARRIED_S = 30.0  # without an edge for the queue; a restart or a takeover takes less


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why there is no confirmation yet: a label for programs and a text."""

    label: str = ""
    text: str = ""


NOT_CARRIED = Obstacle("not_carried", "no edge sends its messages: start `penstock serve rqp`")
NOT_CARRIED_BY_CAST = Obstacle(
    NOT_CARRIED.label,
    f"{NOT_CARRIED.text}; an edge without findreceiver_port says so in its log",
)


class Confirmation:
    """The wait for one message in a transmission queue; an unreliable message counts as done once it is sent."""

    def __init__(self, store: Store, output: Output, queue: Queue, is_certain: bool) -> None:
        self._store = store
        self._output = output
        self._queue = queue
        self._watch = DeliveryTracker(store.open_domain(queue.domain), queue)
        self._goal = "confirmed" if is_certain else "sent"
        self._obstacle = Obstacle()
        self._errors: int | None = None  # errors of the sending agent at the previous check
        self._uncarried_since: float | None = None
        self._is_patient = False  # waits until its timeout, regardless of the agent's reports

    async def wait(self, record: bytes, timeout_s: float | None) -> None:
        """Put the record into the queue and return once it is confirmed.

        Raises StoreError if the record could not be stored, Failure for any other outcome.
        """
        where = f"it may be in {self._queue.name}"
        self._is_patient = timeout_s is not None
        try:
            await self._watch.put(record, origin())
            where = f"it is not {self._goal} yet and stays in {self._queue.name}"
            fate = await self._fate(timeout_s)
        except asyncio.CancelledError:
            self._output.note(f"stopped waiting: {where}")
            raise
        finally:
            await self._close()
        if fate is None:
            raise self._overdue(timeout_s or 0.0)
        if fate.status is DeliveryStatus.DEAD:
            raise await self._dead(fate)
        if fate.status is DeliveryStatus.EMPTIED:
            text = f"{self._queue.name} was purged, and the message with it"
            raise self._failed("emptied", "emptied", text)
        if not fate.session.startswith(CARRIER):
            raise self._failed(
                "taken", "taken", f"another session took it out of {self._queue.name}: {fate.session}"
            )
        self._record(self._goal)
        self._output.line(f"{self._goal} and removed from {self._queue.name}")

    # Polling

    async def _fate(self, timeout_s: float | None) -> DeliveryResult | None:
        """Return how the message ended, or None if it did not in time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ended()
        except TimeoutError:
            return await self._last_poll()

    async def _ended(self) -> DeliveryResult:
        now = asyncio.get_running_loop().time
        pause_s, diagnose_at = SHORTEST_S, now() + DIAGNOSIS_S
        with suppress(StoreError):
            self._has_failed(await self._store.listing.stats(self._queue))  # errors from before this message
        while (fate := await self._poll()) is None:
            if now() >= diagnose_at:
                await self._diagnose()
                diagnose_at = now() + DIAGNOSIS_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)
        return fate

    async def _last_poll(self) -> DeliveryResult | None:
        """Poll once more after the timeout; if the message still waits, find out why. Gives up on a silent store."""
        try:
            async with asyncio.timeout(LAST_S):
                fate = await self._poll()
                if fate is None and not isinstance(self._obstacle, _StoreAway):
                    await self._diagnose()
                return fate
        except TimeoutError:
            self._obstacle = _StoreAway(StoreUnavailable.reason, "the store is not responding")
            return None

    async def _close(self) -> None:
        """End the watch in the store, where it also expires by itself."""
        if not isinstance(self._obstacle, _StoreAway):
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await self._watch.close()

    async def _poll(self) -> DeliveryResult | None:
        """Return how the message ended, or None. Raises StoreError unless the store may come back."""
        try:
            fate = await self._watch.poll()
        except (DatasetLost, NotInitialised):
            raise
        except StoreUnavailable as error:
            self._report(_StoreAway(error.reason, str(error)))
            self._uncarried_since = None  # edges need the store before they come back
            return None
        if isinstance(self._obstacle, _StoreAway):
            self._obstacle = Obstacle()
        return fate if fate.status is not DeliveryStatus.WAITS else None

    async def _diagnose(self) -> None:
        with suppress(StoreUnavailable):
            try:
                stats = await self._store.listing.stats(self._queue)
                self._report(await self._why(stats))
                await self._expect_an_edge(
                    bool(stats["owned_by"]) or self._obstacle.label == QueuePaused.reason
                )
            except QueueUnknown:
                if await self._poll() is None:
                    text = f"queue {self._queue.name!r} was deleted, and the message with it"
                    raise self._failed("deleted", QueueUnknown.reason, text, Exit.NOT_FOUND) from None

    def _has_failed(self, stats: dict[str, Any]) -> bool:
        """Return whether the sending agent has reported an error since the previous call (rqp_mca.md 3.1)."""
        before, self._errors = self._errors, stats["send_errors"]
        return before is not None and self._errors > before

    async def _why(self, stats: dict[str, Any]) -> Obstacle:
        has_failed = self._has_failed(stats)
        if stats["condition"]:
            label, _, text = stats["condition"].partition(": ")
            if has_failed and not self._is_patient and await self._poll() is None:
                raise self._erred(Obstacle(label, text))
            return Obstacle(label, text)
        if stats["owned_by"]:
            return Obstacle()
        spec = (await self._store.catalogue.find(self._queue.name)).spec
        if spec.paused:
            return Obstacle(QueuePaused.reason, f"queue {self._queue.name!r} is paused")
        is_cast = spec.remote is not None and spec.remote.protocol is Protocol.CAST
        return NOT_CARRIED_BY_CAST if is_cast else NOT_CARRIED

    async def _expect_an_edge(self, is_there: bool) -> None:
        """Raise Failure if no edge has owned the queue for UNCARRIED_S: the wait might never end."""
        now = asyncio.get_running_loop().time()
        if is_there:
            self._uncarried_since = None
        elif self._uncarried_since is None:
            self._uncarried_since = now
        elif (
            not self._is_patient and now - self._uncarried_since >= UNCARRIED_S and await self._poll() is None
        ):
            raise self._erred(self._obstacle if self._obstacle.label == NOT_CARRIED.label else NOT_CARRIED)

    def _report(self, obstacle: Obstacle) -> None:
        """Report an obstacle once. The text of an unreachable store varies, so that only its state counts."""
        is_known = obstacle == self._obstacle or (
            isinstance(obstacle, _StoreAway) and isinstance(self._obstacle, _StoreAway)
        )
        if not is_known and obstacle.text:
            self._output.note(f"waiting: {obstacle.label}: {obstacle.text}")
        self._obstacle = obstacle

    # Outcomes

    def _record(self, state: str, reason: str = "") -> None:
        if self._output.as_json:
            because = {"reason": reason} if reason else {}
            self._output.record({"queue": self._queue.name, "state": state, **because})

    def _failed(self, state: str, label: str, text: str, exit: Exit = Exit.REFUSED) -> Failure:
        self._record(state, label)
        return Failure(exit, label, text)

    def _overdue(self, timeout_s: float) -> Failure:
        """Return the failure of a timeout: the outcome is unknown, the message is still stored."""
        obstacle, late = self._obstacle, f"not {self._goal} within {timeout_s:g} s"
        if isinstance(obstacle, _StoreAway):
            text = f"stored in {self._queue.name}, but {obstacle.text}"
            return self._failed("unknown", obstacle.label, text, Exit.UNKNOWN)
        why = f"{obstacle.text}; " if obstacle.text else ""
        text = f"{why}{late}: the message is still in {self._queue.name}"
        return self._failed("waits", obstacle.label or "timeout", text, Exit.UNKNOWN)

    def _erred(self, obstacle: Obstacle) -> Failure:
        """Return the failure of an attempt, though the edge goes on trying: the command does not wait for that."""
        text = f"{obstacle.text}: the message stays in {self._queue.name} and will be sent later"
        return self._failed("waits", obstacle.label, text, Exit.UNKNOWN)

    async def _dead(self, fate: DeliveryResult) -> Failure:
        letters = DeadLetters(self._store.get_domain(self._queue.domain), self._queue)
        error = ""
        with suppress(StoreError):  # the error text is optional
            letter = await letters.find(fate.dead_letter_id)
            error = f": {letter.error}" if letter is not None and letter.error else ""
        text = f"it became dead letter {fate.dead_letter_id} of {self._queue.name}{error}"
        return self._failed("dead", fate.reason, text)


class _StoreAway(Obstacle):
    """The store is unreachable."""
