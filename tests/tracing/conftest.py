"""Traces, from real edges to OpenTelemetry's collector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from services.kit.config.settings import TracingSettings
from services.kit.tracing import Recorder, tracing
from tests.stores import chance, new_server, own_server, pytest_asyncio_loop_factories, running, server
from tests.tracing.collector import Collector

__all__ = ["chance", "new_server", "own_server", "pytest_asyncio_loop_factories", "running", "server"]


@pytest.fixture(scope="session")
def running_collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """One collector for all tests that leave it alone."""
    started = Collector(tmp_path_factory.mktemp("traces") / "collector").start()
    yield started
    started.stop()


@pytest.fixture
def collector(running_collector: Collector) -> Iterator[Collector]:
    """Return the shared collector, without spans of earlier tests."""
    running_collector.begin()
    yield running_collector
    # what tests put in by any protocol: no span has anything of a body
    assert b"a pump" not in running_collector.raw()


NewRecorder = Callable[..., Recorder]


@pytest.fixture
async def recorder(collector: Collector) -> AsyncIterator[NewRecorder]:
    """Return a factory of recorders that export to the collector: `recorder("tmq", ratio=0.5)`."""
    made: list[Recorder] = []

    def make(name: str, **said: Any) -> Recorder:
        usual = {"endpoint": collector.endpoint, "interval_s": 0.02, "most_per_s": 10_000}
        settings = TracingSettings.model_validate(usual | said)
        found = tracing(settings, name)
        assert found is not None
        found.start()
        made.append(found)
        return found

    yield make
    for each in made:
        await each.close()
