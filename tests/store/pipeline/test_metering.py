"""Metrics and samples report the same activity, in any order of reading."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from services.kit.metrics.measures import WAIT_BUCKETS
from services.store import Queue, StoreUnavailable
from services.store.model.buckets import WAIT_S
from services.store.model.spec import Overflow
from services.store.pipeline.domain import Timing
from services.store.pipeline.metering import Activity, ReportActivity
from services.store.pipeline.tallies import NUMBERS
from services.store.upkeep.stats_poller import poll_store, read_store_stats
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.pipeline.test_returns import singles


class Meter:
    """An observer that meters queues."""

    def __init__(self) -> None:
        self.ask: Callable[[], None] = lambda: None
        self.sums: dict[str, Counter[str]] = {}

    def __call__(self, reason: str, number: int) -> None:
        pass

    def meter(self, ask: Callable[[], None]) -> ReportActivity:
        self.ask = ask
        return self.hear

    def hear(self, name: str, activity: Activity) -> None:
        found = self.sums.setdefault(name, Counter())
        found.update(dict(zip(NUMBERS, activity.numbers, strict=True)))
        found.update({f"refused {reason}": number for reason, number in activity.refused.items()})
        found.update({"put": sum(activity.put), "wait": sum(activity.wait)})

    def of(self, name: str) -> dict[str, int]:
        self.ask()
        return {what: number for what, number in self.sums.get(name, Counter()).items() if number}


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
async def desk(server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    """Yield a process that meters its queues and writes samples on request."""
    monkeypatch.setattr(Desk, "_observe", meter)
    async with Desk(server, timing=Timing(sample_s=3600.0)) as desk:
        desk.store.start_serving()
        yield desk


async def work(desk: Desk, queue: Queue) -> None:
    await desk.publish(queue, b"aa", b"bb", b"cc")
    first, second = singles(await desk.take(queue, 2))
    await desk.settle([first])
    await desk.reject([second])


DONE = {
    **{"accepted": 3, "accepted_octets": 6, "given": 2, "given_octets": 4, "acked": 1, "rejected": 1},
    **{"put": 3, "wait": 2},
}


def test_wait_buckets_are_those_of_the_metrics() -> None:
    assert WAIT_S == WAIT_BUCKETS


async def test_activity_is_reported_once(desk: Desk, meter: Meter) -> None:
    queue = await desk.queue()
    await work(desk, queue)
    assert meter.of(queue.name) == DONE
    assert meter.of(queue.name) == DONE
    await work(desk, queue)
    assert meter.of(queue.name) == {what: 2 * number for what, number in DONE.items()}


async def test_activity_is_reported_before_samples_read_it(desk: Desk, meter: Meter) -> None:
    queue = await desk.queue()
    await work(desk, queue)
    desk.domain.tallies.read(time.monotonic())
    assert meter.of(queue.name) == DONE
    await work(desk, queue)
    assert meter.of(queue.name) == {what: 2 * number for what, number in DONE.items()}


@pytest.mark.parametrize("is_reported", [False, True])
async def test_activity_put_back_by_samples_is_reported_once(
    desk: Desk, meter: Meter, is_reported: bool
) -> None:
    """Check this with further activity in between, reported or not."""
    queue = await desk.queue()
    await work(desk, queue)
    read = desk.domain.tallies.read(time.monotonic())
    await work(desk, queue)
    if is_reported:
        desk.domain.tallies.report()
    desk.domain.tallies.put_back(read)
    assert meter.of(queue.name) == {what: 2 * number for what, number in DONE.items()}
    await work(desk, queue)
    assert meter.of(queue.name) == {what: 3 * number for what, number in DONE.items()}
    (tally,) = desk.domain.tallies.read(time.monotonic())
    assert tally.accepted == 9


async def test_refusals_are_reported(desk: Desk, meter: Meter) -> None:
    queue = await desk.queue(max_length=1)
    await desk.publish(queue, b"a", b"b", b"c")
    assert meter.of(queue.name)["refused queue_full"] == 2


async def test_tallies_are_dropped_without_samples(
    server: Server, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Desk, "_observe", meter)
    async with Desk(server, timing=Timing(samples_kept=0)) as desk:
        desk.store.start_serving()
        queue = await desk.queue()
        await work(desk, queue)
        assert meter.of(queue.name) == DONE
        await work(desk, queue)
        assert meter.of(queue.name) == {what: 2 * number for what, number in DONE.items()}
        assert desk.domain.tallies.read(time.monotonic()) == []


async def test_statistics_of_all_queues(desk: Desk) -> None:
    one, two = await desk.queue("one"), await desk.queue("two")
    await work(desk, one)
    await desk.publish(two, b"x")
    await desk.take(two, 1)
    found = (await read_store_stats(desk.store.registry, desk.store.listing)).queues
    assert found.keys() == {one.name, two.name}
    reported = found[one.name]
    assert (reported.ready, reported.in_flight, reported.dead, reported.died) == (1, 0, 1, 1)
    assert reported.octets > 0
    assert 0 < reported.oldest_age_s < 60
    assert (found[two.name].ready, found[two.name].in_flight) == (0, 1)


async def test_used_share_of_a_queues_bounds(desk: Desk) -> None:
    """Check that leased messages and the nearer bound count, and that queues with overflow have no used share."""
    queues = [
        await desk.queue("long", max_length=4, max_bytes=1000),
        await desk.queue("large", max_length=100, max_bytes=40),
        await desk.queue("free"),
        await desk.queue("rolling", max_length=3, overflow=Overflow.DEAD_LETTER_OLDEST),
        await desk.queue("empty", max_length=4),
    ]
    for queue in queues[:4]:
        await desk.put(queue, b"0123456789", b"0123456789", b"0123456789")
    await desk.take(queues[0], 2)
    found = {
        name: value.used
        for name, value in (await read_store_stats(desk.store.registry, desk.store.listing)).queues.items()
    }
    assert found["long"] == 3 / 4
    assert found["large"] == (await desk.stats(queues[1]))["bytes"] / 40 > 3 / 100
    assert (found["free"], found["rolling"], found["empty"]) == (0, 0, 0)


async def test_unreadable_queue_hides_no_other(desk: Desk) -> None:
    """Check that queues of a newer version hide no others; one without a readable id counts as unavailable."""
    readable, newer = await desk.queue("readable"), await desk.queue("newer")
    await desk.put(newer, b"x")
    registry = desk.store.registry
    kept = json.loads(await registry.link.call("HGET", registry.keys.queues, newer.name))
    kept["spec"] = json.dumps({**json.loads(kept["spec"]), "colour": "blue"})
    await registry.link.call("HSET", registry.keys.queues, newer.name, json.dumps(kept))
    await registry.link.call("HSET", registry.keys.queues, "broken", "{")
    found = await read_store_stats(desk.store.registry, desk.store.listing)
    assert (found.queues.keys(), set(found.unreadable)) == ({readable.name, newer.name}, {"broken"})
    assert found.queues[newer.name].ready == 1


async def test_polling_continues_after_a_failure() -> None:
    """Check that polling continues after a failure, so that results do not become stale."""
    reported, results = list[int | None](), iter([1, KeyError("a fault"), StoreUnavailable(), 2, *[3] * 100])
    is_complete = asyncio.Event()

    async def poll() -> int:
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return found

    def receive(found: int | None) -> None:
        reported.append(found)
        if len(reported) == 6:
            is_complete.set()
        if len(reported) in (4, 5):
            raise KeyError("a fault of the callback")

    polling = asyncio.create_task(poll_store(poll, receive, 0.0))
    waiting = asyncio.create_task(is_complete.wait())
    await asyncio.wait([polling, waiting], return_when=asyncio.FIRST_COMPLETED)
    polling.cancel()
    waiting.cancel()
    assert reported[:6] == [1, None, None, 2, None, 3]
