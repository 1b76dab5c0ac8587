"""Whether anybody takes from a queue: takers come now and then, so one look says little."""

from __future__ import annotations

from typing import Any

import pytest

from services.console.live import rows
from services.console.live.look import Look
from services.store import Queue
from services.store.catalogue.figures import BulkStatsResult
from services.store.model.errors import StoreFault
from tests.console.live_console import LiveConsole
from tests.live import until

EVERY_S = 2.0
OLD_MS = 600_000


class Looks:
    """One after the other, of one queue with a backlog, as the live view takes them."""

    def __init__(self, queue: Queue, figures: dict[str, Any]) -> None:
        self._queue = queue
        self._figures = {**figures, "ready": 9, "oldest_age_ms": OLD_MS}
        self._last = Look()

    async def next(self, **changed: Any) -> bool:
        """Whether nobody takes, as the row says. changed: figures, as they are from now on."""
        self._figures = {**self._figures, **changed}
        return await self._look(BulkStatsResult(stats={"orders": self._figures}))

    async def next_fails(self) -> bool:
        return await self._look(BulkStatsResult(errors={"orders": StoreFault("damaged")}))

    async def _look(self, looked: BulkStatsResult) -> bool:
        look = Look(self._last.version + 1, self._last.taken + EVERY_S)
        self._last = await look.compared(self._last, [self._queue], looked, {})
        return bool(look.rows["orders"].summary["nobodyTakes"])


@pytest.fixture
async def looks(console: LiveConsole) -> Looks:
    queue = await console.declare("orders")
    return Looks(queue, await console.tools.listing.stats(queue))


async def test_who_comes_every_ten_seconds_is_enough(looks: Looks) -> None:
    said = [await looks.next(delivered=5 + number // 5) for number in range(200)]
    assert not any(said)


async def test_a_minute_without_anybody_is_told(looks: Looks) -> None:
    said = [await looks.next(delivered=5) for _ in range(40)]
    assert said == [False] * 31 + [True] * 9  # 30 intervals are a minute, which is to be over
    assert await looks.next(delivered=6) is False
    said = [await looks.next() for _ in range(40)]
    assert said == [False] * 30 + [True] * 10


async def test_who_is_at_work_leaves_nothing_untaken(looks: Looks) -> None:
    """The oldest message is the one that he has; what has just come has waited for nobody."""
    for _ in range(40):
        assert await looks.next(delivered=5, ready=0) is False
    said = [await looks.next(ready=1) for _ in range(40)]
    assert said == [False] * 31 + [True] * 9


async def test_nobody_has_ever_taken_anything(looks: Looks) -> None:
    assert await looks.next(delivered=0) is True
    assert await looks.next(oldest_age_ms=59_000) is False  # it has not waited for long
    assert await looks.next(oldest_age_ms=OLD_MS, ready=0) is False


async def test_a_look_that_failed_forgets_nothing(looks: Looks) -> None:
    for _ in range(20):
        await looks.next(delivered=5)
    assert await looks.next_fails() is False  # nobody knows how it stands
    said = [await looks.next() for _ in range(15)]
    assert said == [False] * 10 + [True] * 5


async def test_the_api_says_it(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "UNTAKEN_S", 0.3)
    await console.fill(await console.declare("orders"), b"a")
    await console.fill(await console.declare("resting"), b"a")
    await console.declare("resting", replace=True, paused=True)

    async def are_told() -> bool:
        told = {row["name"]: row["nobodyTakes"] for row in (await console.get("/queues")).items}
        return told == {"orders": True, "resting": False}

    await until(are_told)
    assert (await console.found("/queues/orders"))["nobodyTakes"] is True
