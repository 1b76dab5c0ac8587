"""Test that counts reach the metrics once, soon and completely."""

import asyncio

from services.kit.metrics.metrics import Metrics
from services.kit.metrics.tally import Tally
from tests.kit.harness import until


def requests(metrics: Metrics, result: str) -> float:
    labels = {"edge": "test", "operation": "put", "result": result}
    return metrics.registry.get_sample_value("penstock_requests_total", labels) or 0.0


def seconds(metrics: Metrics) -> float:
    labels = {"edge": "test", "operation": "put"}
    return metrics.registry.get_sample_value("penstock_request_seconds_count", labels) or 0.0


def test_runs_are_counted_by_result() -> None:
    metrics = Metrics("test")
    tally = Tally(metrics)
    tally.count("put", 3, 5, 0.1)
    tally.count("put", 1, 1, 0.1)
    assert requests(metrics, "ok") == 0
    tally.publish()
    tally.publish()  # reported counts are not reported again
    assert (requests(metrics, "ok"), requests(metrics, "failed"), seconds(metrics)) == (4, 2, 6)


async def test_counts_are_published_periodically() -> None:
    metrics = Metrics("test")
    tally = Tally(metrics)
    tally.start()
    for number in (1, 2):
        tally.count("put", 1, 1, 0.0)
        await until(lambda number=number: requests(metrics, "ok") == number)
    await tally.close()


async def test_close_publishes_the_last_counts() -> None:
    metrics = Metrics("test")
    tally = Tally(metrics)
    tally.start()
    tally.count("put", 1, 1, 0.0)
    await tally.close()
    assert requests(metrics, "ok") == 1
    assert [task.get_name() for task in asyncio.all_tasks()].count("test tally") == 0


async def test_tally_that_was_not_started_can_be_closed() -> None:
    metrics = Metrics("test")
    tally = Tally(metrics)
    tally.count("put", 1, 1, 0.0)
    await tally.close()
    assert requests(metrics, "ok") == 1
