"""The kit is written for uvloop, so its tests run on it; certificates for TLS, and an edge with two workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.kit.authority import Authority
from tests.kit.harness import Program


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody told the server about."""
    return Authority.create(tmp_path_factory.mktemp("stranger"))


@pytest.fixture
def pair() -> Program:
    """An edge with two workers, to be entered."""
    return Program(workers=2)
