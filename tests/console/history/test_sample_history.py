"""Test reading samples in the background."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.console.history import sample_history
from services.console.history.history import DELAY_MS, Steps
from services.console.history.sample_history import BATCH, SampleHistory
from services.store.model.buckets import CLASSES
from services.store.model.keys import DomainKeys
from tests.console.history.test_history import history
from tests.console.live_console import LiveConsole
from tests.live import PATIENCE_S, until
from tests.servers import Server
from tests.stores import NewServer

KEY = DomainKeys("main").samples
NONE = ",".join(["0"] * CLASSES)
MANY = 5_000
FILL = """
for i = 1, ARGV[3] do
  redis.call('XADD', KEYS[1], string.format('%.0f-*', ARGV[1] + (i - 1) * ARGV[2]), 'v', 1, 'kind', 'queue',
    'process', 'tmq-1', 'queue', 'orders', 'n', ARGV[5] + i, 'ms', ARGV[2], 'in', 1, 'out', 0, 'acked', 0,
    'refused', '', 'put', ARGV[4], 'wait', ARGV[4])
end
"""


def fill(server: Server, first_ms: int, step_ms: int, number: int, after: int = 0) -> None:
    """Write samples of one message each. `after` is the previous serial."""
    server.call("EVAL", FILL, 1, KEY, first_ms, step_ms, number, NONE, after)


def messages(found: dict[str, Any]) -> float:
    return sum(number or 0 for number in found["series"]["in"]) * found["stepMs"] / 1000


async def test_response_does_not_wait_for_all_samples(console: LiveConsole, server: Server) -> None:
    await console.declare("orders")
    now_ms = await console.tools.now_ms()
    fill(server, now_ms - 290_000, 1, 1)
    fill(server, now_ms - 220_000, 10, MANY, after=1)
    for path in ("/queues/orders/history?minutes=5", "/history?minutes=5"):
        assert (await console.found(path))["complete"] is False
    for path in ("/queues/orders/history?minutes=5", "/history?minutes=5"):
        assert MANY * 0.99 <= messages(await history(console, path)) <= MANY * 1.01


async def test_response_waits_for_new_samples(
    console: LiveConsole, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a response waits for new samples, while older ones may take longer."""
    monkeypatch.setattr(sample_history, "POLL_S", PATIENCE_S)
    await console.declare("orders")
    now_ms = await console.tools.now_ms()
    fill(server, now_ms - 290_000, 1, 1)
    for number, path in enumerate(("/queues/orders/history?minutes=5", "/history?minutes=5")):
        await history(console, path)
        fill(server, now_ms - 220_000 + number * 60_000, 10, MANY // 4, after=1 + number * MANY // 4)
        found = await console.found(path)
        assert found["complete"] is True
        assert messages(found) == pytest.approx((number + 1) * MANY // 4, rel=0.01)


async def test_the_newest_are_read_first(console: LiveConsole, server: Server) -> None:
    now_ms = await console.tools.now_ms()
    fill(server, now_ms - 100_000, 100, 500)
    reader = SampleHistory(console.tools.following("main", 3_600_000, 100_000))
    for turn in range(1, 5):
        assert await reader.read_on()
        assert reader.known_ms == reader.totals.known_ms == now_ms - 100_000 + (500 - turn * BATCH) * 100
        assert len(reader.of("orders")) == turn * BATCH
    fill(server, now_ms - 50_000, 100, 200, after=500)
    assert await reader.read_on()  # new samples are read first
    assert await reader.read_on()
    assert len(reader.of("orders")) == 6 * BATCH
    while await reader.read_on():
        pass
    times = [each.at_ms for each in reader.of("orders")]
    assert times == sorted(times)
    assert len(times) == 700


async def test_without_samples(console: LiveConsole, server: Server) -> None:
    """Check that without samples each step of a queue is 0, and the totals are unknown."""
    await console.declare("orders")
    server.call("DEL", KEY)
    found = await history(console, "/queues/orders/history?minutes=1")
    assert found["series"]["in"] == [0.0] * 6
    fill(server, await console.tools.now_ms() - 30_000, 1, 1)
    found = await history(console, "/queues/orders/history?minutes=1")
    assert found["series"]["in"][0] is None


async def test_samples_are_dropped_without_requests(
    console: LiveConsole, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_history, "KEPT_S", 0.1)
    monkeypatch.setattr(sample_history, "POLL_S", 0.01)
    fill(server, await console.tools.now_ms() - 60_000, 1, 10)
    await console.found("/history")
    await until(
        lambda: not any(task.get_name().startswith("console samples") for task in asyncio.all_tasks())
    )
    assert (await history(console, "/history"))["complete"]


async def test_store_outage(new_server: NewServer) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        await history(console, "/queues/orders/history?minutes=1")
        server.kill9()
        for path in ("/queues/orders/history", "/history"):
            assert (await console.get(path)).status == 503
        server.restart()

        async def is_back() -> bool:
            reply = await console.get("/queues/orders/history?minutes=1")
            return reply.status == 200 and bool(reply.document["complete"])

        await until(is_back)


async def test_reading_restarts_after_an_internal_error(
    console: LiveConsole, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an internal error is logged and returned, and the next request starts reading again."""
    now_ms = await console.tools.now_ms()
    fill(server, now_ms - 90_000, 1, 1)
    fill(server, now_ms - 40_000, 1, 10, after=1)
    with monkeypatch.context() as broken:
        broken.setattr(sample_history, "parse", lambda _: 1 // 0)

        async def has_failed() -> bool:
            return (await console.get("/history")).status == 500

        await until(has_failed)
    assert messages(await history(console, "/history?minutes=2")) == pytest.approx(10, rel=0.01)
    assert console.log.events("history_fault")
    console.log.lines.clear()


class TestSteps:
    STEPS = Steps(100_000, 10_000, 3, 130_000 + DELAY_MS)

    @pytest.mark.parametrize(
        ("behind_ms", "known"),
        [(0.0, 3), (1.0, 2), (10_000.0, 2), (10_001.0, 1), (1e9, 0), (float("inf"), 0)],
    )
    def test_steps_not_read_yet_are_null(self, behind_ms: float, known: int) -> None:
        document = self.STEPS.document({"in": [1, 2, 3]}, complete=False, behind_ms=behind_ms)
        assert document["series"]["in"] == [1, 2, 3][:known] + [None] * (3 - known)

    def test_complete_steps(self) -> None:
        assert self.STEPS.document({"in": [1, 2, 3]}, complete=True, behind_ms=5.0)["series"]["in"] == [
            1,
            2,
            3,
        ]
