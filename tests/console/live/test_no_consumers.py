"""Test the detection of queues without consumers."""

from __future__ import annotations

from typing import Any

import pytest

from services.console.live import rows
from services.console.live.snapshot import Snapshot
from services.store import Queue
from services.store.catalogue.figures import BulkStatsResult
from services.store.model.errors import StoreFault
from tests.console.live_console import LiveConsole
from tests.live import until

EVERY_S = 2.0
OLD_MS = 600_000


class Polls:
    """Consecutive polls of one queue with a backlog, as the live view does them."""

    def __init__(self, queue: Queue, figures: dict[str, Any]) -> None:
        self._queue = queue
        self._figures = {**figures, "ready": 9, "oldest_age_ms": OLD_MS}
        self._last = Snapshot()

    async def next(self, **changed: Any) -> bool:
        """Poll, and return nobodyTakes of the row. `changed` are figures that differ from now on."""
        self._figures = {**self._figures, **changed}
        return await self._poll(BulkStatsResult(stats={"orders": self._figures}))

    async def next_fails(self) -> bool:
        return await self._poll(BulkStatsResult(errors={"orders": StoreFault("damaged")}))

    async def _poll(self, stats: BulkStatsResult) -> bool:
        snapshot = Snapshot(self._last.version + 1, self._last.taken + EVERY_S)
        await snapshot.fill(self._last, [self._queue], stats, {})
        self._last = snapshot
        return bool(snapshot.rows["orders"].summary["nobodyTakes"])


@pytest.fixture
async def polls(console: LiveConsole) -> Polls:
    queue = await console.declare("orders")
    return Polls(queue, await console.tools.listing.stats(queue))


async def test_one_delivery_every_ten_seconds_suffices(polls: Polls) -> None:
    results = [await polls.next(delivered=5 + number // 5) for number in range(200)]
    assert not any(results)


async def test_no_consumers_after_a_minute_without_deliveries(polls: Polls) -> None:
    results = [await polls.next(delivered=5) for _ in range(40)]
    assert results == [False] * 31 + [True] * 9  # 30 intervals are a minute, which must be over
    assert await polls.next(delivered=6) is False
    results = [await polls.next() for _ in range(40)]
    assert results == [False] * 30 + [True] * 10


async def test_time_without_ready_messages_does_not_count(polls: Polls) -> None:
    """Check that time without ready messages does not count: the oldest is in flight, the ready one is new."""
    for _ in range(40):
        assert await polls.next(delivered=5, ready=0) is False
    results = [await polls.next(ready=1) for _ in range(40)]
    assert results == [False] * 31 + [True] * 9


async def test_queue_that_never_had_a_delivery(polls: Polls) -> None:
    assert await polls.next(delivered=0) is True
    assert await polls.next(oldest_age_ms=59_000) is False  # it has not waited for long
    assert await polls.next(oldest_age_ms=OLD_MS, ready=0) is False


async def test_failed_poll_keeps_the_time_of_the_last_delivery(polls: Polls) -> None:
    for _ in range(20):
        await polls.next(delivered=5)
    assert await polls.next_fails() is False  # its state is unknown
    results = [await polls.next() for _ in range(15)]
    assert results == [False] * 10 + [True] * 5


async def test_api_reports_no_consumers(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "IDLE_S", 0.3)
    await console.fill(await console.declare("orders"), b"a")
    await console.fill(await console.declare("resting"), b"a")
    await console.declare("resting", replace=True, paused=True)

    async def are_shown() -> bool:
        by_name = {row["name"]: row["nobodyTakes"] for row in (await console.get("/queues")).items}
        return by_name == {"orders": True, "resting": False}

    await until(are_shown)
    assert (await console.found("/queues/orders"))["nobodyTakes"] is True
