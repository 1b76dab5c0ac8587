"""Test the full pass in /healthz and /readyz (docs/kubernetes.md, "Drift")."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from penstock_operator.cluster.api import Api
from penstock_operator.control import Control
from penstock_operator.settings import OperatorSettings
from penstock_operator.sweep import SLOW_S, STUCK, Sweep

from services.store import Store
from tests.kubernetes.apiserver import ApiServer
from tests.operator.inside import Inside, access
from tests.operator.line import Line
from tests.operator.resource_documents import Seen
from tests.servers import Server
from tests.store.desk import until

INTERVAL_S = 1.0
LONG_S = STUCK * INTERVAL_S + SLOW_S


@pytest.fixture
async def sweep(
    inside: Inside, api_server: ApiServer, line: Line, seen: Seen, store: Server
) -> AsyncIterator[Sweep]:
    """Yield a full pass each second, by the time that the test sets."""
    client, api = Store(store.url, "operator"), Api(lambda: access(api_server.as_user(port=line.port)))
    settings = OperatorSettings(namespaces=seen.namespace, sweep_s=INTERVAL_S)
    control = Control(settings, client, api, inside.metrics)
    yield Sweep(control, api, INTERVAL_S, inside.clock)
    await client.close(1.0)
    await api.close()


@contextlib.asynccontextmanager
async def running(sweep: Sweep) -> AsyncIterator[None]:
    task = asyncio.create_task(sweep.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_operator_without_sweeps_is_not_alive(sweep: Sweep, inside: Inside) -> None:
    """Check that an operator without sweeps, also without a first one, is not alive until a late sweep."""
    inside.clock.now += LONG_S
    assert sweep.stuck() is None
    inside.clock.now += 1
    assert sweep.stuck() == f"no sweep for {LONG_S + 1:.0f} s"
    await sweep.first()
    assert sweep.stuck() is None
    inside.clock.now += LONG_S + 1
    assert sweep.stuck() == f"no sweep for {LONG_S + 1:.0f} s"
    async with running(sweep):
        await until(lambda: sweep.stuck() is None)


async def test_api_server_outage_keeps_the_operator_alive(line: Line, sweep: Sweep, inside: Inside) -> None:
    await sweep.first()
    assert sweep.trouble is None
    line.pull_out()
    inside.clock.now += LONG_S + 1
    async with running(sweep):
        await until(lambda: sweep.stuck() is None)
        assert "queues of" in str(sweep.trouble)
        assert "cannot be listed" in str(sweep.trouble)
        line.plug_in()
        await until(lambda: sweep.trouble is None)
