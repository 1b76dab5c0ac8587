"""Traces, from real edges to OpenTelemetry's collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores import chance, new_server, own_server, pytest_asyncio_loop_factories, running, server
from tests.tracing.collector import Collector

__all__ = ["chance", "new_server", "own_server", "pytest_asyncio_loop_factories", "running", "server"]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    started = Collector(tmp_path / "collector").start()
    yield started
    started.stop()
