"""Test requests on whole queues, which run outside the session's loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from services.kit.metrics.metrics import Metrics
from services.store import Store, StoreError
from services.store.model.errors import OutcomeUnknown, QueueUnknown, StoreUnavailable
from services.tmq.service import TmqService
from services.tmq.settings import TmqSettings
from tests.live import until


@pytest.fixture
async def service() -> AsyncIterator[TmqService]:
    """Yield a service that never uses its store."""
    store = Store("redis://127.0.0.1:1", "tmq")
    service = TmqService(TmqSettings(request_timeout_s=0.01), store, Metrics("tmq"))
    yield service
    await service.close()


async def outcome(service: TmqService, work: Awaitable[Any]) -> Any:
    results: list[Any] = []
    service.background.run(work, results.append)
    await until(lambda: results)
    return results[0]


async def test_result_of_the_commit_is_reported(service: TmqService) -> None:
    async def work() -> str:
        return "done"

    assert await outcome(service, work()) == "done"


async def test_slow_read_of_the_store_fails_without_effect(service: TmqService) -> None:
    results: list[Any] = []
    service.background.run_read(asyncio.Event().wait(), results.append)
    await until(lambda: results)
    assert isinstance(results[0], StoreUnavailable)


async def test_refusal_of_the_store_is_reported(service: TmqService) -> None:
    async def work() -> None:
        raise QueueUnknown

    assert isinstance(await outcome(service, work()), QueueUnknown)


async def test_slow_request_has_an_unknown_outcome(service: TmqService) -> None:
    # 7.2
    assert isinstance(await outcome(service, asyncio.Event().wait()), OutcomeUnknown)


async def test_internal_error_is_counted_and_logged(
    service: TmqService, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise RuntimeError("asked for it")

    error = await outcome(service, work())
    assert type(error) is StoreError
    assert str(error) == "asked for it"
    assert service.metrics.registry.get_sample_value("penstock_local_errors_total", {"edge": "tmq"}) == 1
    assert [getattr(line, "action", None) for line in caplog.records] == ["queue_work_failed"]


async def test_no_callback_after_the_end(service: TmqService) -> None:
    results: list[Any] = []
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0)
        raise AssertionError("the call continued")

    service.background.run(work(), results.append)
    await begun.wait()
    await service.close()
    assert results == []
