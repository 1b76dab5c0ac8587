"""Test time series built from samples."""

from __future__ import annotations

from typing import Any

import pytest

from services.console.history.history import DELAY_MS
from services.console.history.sample_history import MAX_KEPT
from services.console.history.series import DEPTH_LASTS_MS, Depth, Flow, Series, parse, quantile_ms
from services.console.history.totals import Totals
from services.store.model.buckets import CLASSES, PUT_S, WAIT_S
from services.store.upkeep.sample_reader import StoredSample
from tests.console.live_console import LiveConsole
from tests.live import until

NONE = ",".join(["0"] * CLASSES)


def classes(**counts: int) -> str:
    """Return counts by class, given as c3=5."""
    return ",".join(str(counts.get(f"c{index}", 0)) for index in range(CLASSES))


def flow(at_ms: int, ms: int = 10_000, *, put: str = NONE, wait: str = NONE, **numbers: int) -> Flow:
    names = ("in_", "out", "acked", "refused")
    return Flow(at_ms, ms, tuple(numbers.get(name, 0) for name in names), put, wait)


def series(*kept: Any, count: int = 3, known_ms: int = 0) -> dict[str, Any]:
    found = Series(100_000, 10_000, count, known_ms)
    found.add(kept)
    return found.values()


class TestFlows:
    def test_counts_of_one_step_become_a_rate(self) -> None:
        assert series(flow(110_000, in_=50, out=20, acked=10, refused=1))["in"] == [5.0, 0.0, 0.0]

    def test_are_spread_over_the_steps_they_cover(self) -> None:
        assert series(flow(115_000, in_=100))["in"] == [5.0, 5.0, 0.0]
        assert series(flow(130_000, 30_000, in_=300))["in"] == [10.0, 10.0, 10.0]

    def test_samples_outside_the_range_are_left_out(self) -> None:
        assert series(flow(105_000, in_=100), flow(135_000, in_=100), flow(90_000, in_=7))["in"] == [
            5.0,
            0.0,
            5.0,
        ]

    def test_counts_of_several_processes_are_added(self) -> None:
        assert series(flow(110_000, in_=50), flow(110_000, in_=50))["in"] == [10.0, 0.0, 0.0]

    def test_are_unknown_before_the_first_sample(self) -> None:
        assert series(flow(130_000, in_=50), known_ms=110_000)["in"] == [None, 0.0, 5.0]


class TestSizes:
    def test_last_until_the_next_sample(self) -> None:
        found = series(Depth(125_000, 7, 2, 1, 400), Depth(101_000, 5, 0, 0, 0))
        assert found["depth"] == [5, 5, 7]
        assert (found["inFlight"], found["dead"], found["oldestAgeMs"]) == ([0, 0, 2], [0, 0, 1], [0, 0, 400])

    def test_are_unknown_before_the_first_sample(self) -> None:
        assert series(Depth(115_000, 7, 0, 0, 0))["depth"] == [None, 7, 7]

    def test_expire(self) -> None:
        assert series(Depth(121_000 - DEPTH_LASTS_MS, 7, 0, 0, 0))["depth"] == [7, 7, None]


class TestQuantiles:
    def test_within_a_class(self) -> None:
        counts = [0.0] * CLASSES
        counts[3] = 100  # between 2.5 and 5 ms
        assert quantile_ms(counts, PUT_S, 0.5) == pytest.approx(3.75)
        assert quantile_ms(counts, PUT_S, 0.99) == pytest.approx(4.975, rel=0.01)

    def test_over_classes(self) -> None:
        counts = [0.0] * CLASSES
        counts[0], counts[5] = 90, 10
        assert quantile_ms(counts, WAIT_S, 0.5) == pytest.approx(0.556, abs=0.001)
        assert quantile_ms(counts, WAIT_S, 0.99) == pytest.approx(460.0)

    def test_above_the_last_bound(self) -> None:
        counts = [0.0] * CLASSES
        counts[-1] = 1
        assert quantile_ms(counts, PUT_S, 0.5) == 30_000.0

    def test_quantile_of_no_values_is_null(self) -> None:
        assert quantile_ms([0.0] * CLASSES, PUT_S, 0.5) is None
        assert series(flow(110_000))["putP50Ms"] == [None, None, None]

    def test_each_step_has_its_own_quantile(self) -> None:
        found = series(flow(110_000, put=classes(c3=10), wait=classes(c1=10)))
        assert found["putP50Ms"] == [3.75, None, None]
        assert found["waitP99Ms"][0] == pytest.approx(4.96)


def test_other_samples_are_ignored() -> None:
    for fields in [
        {},
        {"kind": "edge", "v": "1"},
        {"kind": "queue", "v": "2"},
        {"kind": "queue", "v": "1"},
        {"kind": "depth", "v": "1", "queue": "q", "len": "x", "leased": "0", "dead": "0", "oldest_ms": "0"},
    ]:
        assert parse(StoredSample("1-0", 1, fields)) is None


async def history(console: LiveConsole, path: str) -> dict[str, Any]:
    """Return a history once it is complete."""

    async def complete() -> Any:
        found = await console.found(path)
        return found if found["complete"] else None

    found: dict[str, Any] = await until(complete)
    return found


async def _write_sample(console: LiveConsole, at_ms: int, **fields: Any) -> None:
    """Write a sample of that time to the store."""
    link = console.tools.registry.link
    plain = [str(part) for name, value in fields.items() for part in (name, value)]
    await link.call("XADD", "ps:{main}:samples", f"{at_ms}-*", *plain)


def _queue_sample(queue: str, n: int, **numbers: int) -> dict[str, Any]:
    named = {"v": 1, "kind": "queue", "edge": "tmq", "process": "tmq-1", "n": n, "ms": 10_000, "queue": queue}
    octets = {"in_octets": 0, "out_octets": 0, "returned": 0, "rejected": 0}
    flows = {"in": numbers.get("in_", 0), "out": 0, "acked": 0}
    return {**named, **flows, **octets, "refused": "queue_full=3", "put": classes(c3=5), "wait": NONE}


async def test_a_queue(console: LiveConsole) -> None:
    await console.declare("orders")
    assert await console.tools.get_domain("main").link.call("DEL", "ps:{main}:samples") in (0, 1)
    now_ms = await console.tools.now_ms()
    await _write_sample(console, now_ms - 120_000, **_queue_sample("others", 1, in_=5))
    await _write_sample(console, now_ms - 60_000, **_queue_sample("orders", 1, in_=100))
    # its response was lost
    await _write_sample(console, now_ms - 60_000, **_queue_sample("orders", 1, in_=100))
    found = await history(console, "/queues/orders/history?minutes=5")
    assert found["stepMs"] == 10_000
    inflow = found["series"]["in"]
    assert len(inflow) == 30
    assert sum(number or 0 for number in inflow) == pytest.approx(10, rel=0.01)
    assert inflow[0] is None
    assert inflow[-1] == 0
    assert sum(number or 0 for number in found["series"]["refused"]) == pytest.approx(0.3, rel=0.02)
    assert {number for number in found["series"]["putP50Ms"] if number} == {3.75}
    for _ in range(2):
        await _write_sample(console, now_ms - 30_000, **_queue_sample("orders", 2, in_=50))
    again = await history(console, "/queues/orders/history?minutes=5")
    assert sum(number or 0 for number in again["series"]["in"]) == pytest.approx(15, rel=0.01)


async def test_all_queues_together(console: LiveConsole) -> None:
    """Check that deleted queues count, and that the time before the first sample is unknown."""
    found = await history(console, "/history?minutes=5")
    now_ms = await console.tools.now_ms()
    await _write_sample(console, now_ms - 120_000, **_queue_sample("others", 1, in_=50))
    await _write_sample(console, now_ms - 60_000, **_queue_sample("orders", 1, in_=100))
    # its response was lost
    await _write_sample(console, now_ms - 60_000, **_queue_sample("orders", 1, in_=100))
    found = await history(console, "/history?minutes=5")
    assert found["stepMs"] == 10_000
    series = found["series"]
    assert set(series) == {"in", "out", "acked", "refused"}
    assert {len(values) for values in series.values()} == {30}
    assert series["in"][0] is None
    # part of the first sample may be before it
    assert 10 <= sum(number or 0 for number in series["in"]) <= 15.1
    assert sum(number or 0 for number in series["refused"]) >= 0.29  # each value is rounded
    longer = await history(console, "/history?minutes=180")
    assert longer["stepMs"] == 30_000
    assert sum(number or 0 for number in longer["series"]["in"]) * 30 == pytest.approx(
        sum(number or 0 for number in series["in"]) * 10, abs=51
    )


class TestTotals:
    def test_are_those_of_all_flows(self) -> None:
        totals = Totals(60_000)
        totals.known_ms = 100_000
        for each in (flow(115_000, in_=100), flow(120_000, in_=50, out=20), flow(110_000, 5_000, acked=30)):
            totals.add(each)
        rates = Totals.rates([totals], 100_000, 10_000, 3)
        assert rates == {
            "in": [5.0, 10.0, 0.0],
            "out": [0.0, 2.0, 0.0],
            "acked": [3.0, 0.0, 0.0],
            "refused": [0.0, 0.0, 0.0],
        }
        assert Totals.rates([totals], 90_000, 30_000, 2)["in"] == [None, 0.0]
        assert Totals.rates([totals], 100_000, 30_000, 1)["in"] == [5.0]

    def test_rates_of_several_domains_are_added(self) -> None:
        one, other, silent = Totals(60_000), Totals(60_000), Totals(60_000)
        one.known_ms, other.known_ms = 100_000, 110_000
        one.add(flow(120_000, in_=50))
        other.add(flow(120_000, in_=20))
        assert Totals.rates([one, other, silent], 100_000, 10_000, 2)["in"] == [None, 7.0]
        assert Totals.rates([silent], 100_000, 10_000, 2)["in"] == [None, None]

    def test_old_steps_are_dropped(self) -> None:
        totals = Totals(60_000)
        totals.known_ms = 1
        for at in range(1, 1001):
            totals.add(flow(at * 10_000, in_=1))
        rates = Totals.rates([totals], 20_000, 10_000, 998)["in"]
        assert rates[-6:] == [0.1] * 6
        assert sum(number or 0 for number in rates) < 1, "older samples are removed"


async def test_periods_and_steps(console: LiveConsole) -> None:
    await console.declare("orders")
    for minutes, step_ms, count in (
        *((1, 10_000, 6), (60, 10_000, 360), (61, 30_000, 122), (180, 30_000, 360)),
        *((181, 60_000, 181), (360, 60_000, 360), (361, 240_000, 90), (1440, 240_000, 360)),
    ):
        found = await history(console, f"/queues/orders/history?minutes={minutes}")
        assert found["stepMs"] == step_ms
        assert {len(values) for values in found["series"].values()} == {count}
    for minutes in ("0", "1441", "x"):
        assert (await console.get(f"/queues/orders/history?minutes={minutes}")).status == 400
    assert (await console.get("/queues/nope/history")).status == 404


async def test_limit_of_samples(console: LiveConsole, monkeypatch: Any) -> None:
    monkeypatch.setattr("services.console.history.sample_history.MAX_KEPT", 10)
    monkeypatch.setattr("services.console.history.history.MAX_KEPT", 10)
    assert MAX_KEPT > 1000
    await console.declare("orders")
    now_ms = await console.tools.now_ms()
    for number in range(30):
        at_ms = now_ms - 60_000 + number * 1000
        await _write_sample(console, at_ms, **_queue_sample("orders", number + 1, in_=1))
    found = await history(console, "/queues/orders/history?minutes=2")
    assert sum(number is not None for number in found["series"]["in"]) <= (40_000 - DELAY_MS) // 10_000 + 1
