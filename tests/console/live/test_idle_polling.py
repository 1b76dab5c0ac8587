"""Test polling without requests, and the first request after a pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.console.live import interest, live
from services.console.live.interest import Interest
from services.console.live.live import Live
from services.store import StoreUnavailable
from services.store.catalogue import QueueListCache
from services.store.model.keys import RegistryKeys
from tests.console.live_console import PATIENCE_S, LiveConsole
from tests.live import set_up, until
from tests.servers import PROGRAMS, Server
from tests.stores import NewServer
from tests.topologies import Cluster


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Return a list of the timeouts with which polling waited for a request; None is no timeout."""
    found: list[float | None] = []
    real = Interest.wait

    async def noted(self: Interest, most_s: float | None) -> None:
        found.append(most_s)
        await real(self, most_s)

    monkeypatch.setattr(Interest, "wait", noted)
    return found


@asynccontextmanager
async def resting(console: LiveConsole, patch: pytest.MonkeyPatch, rest_s: float) -> AsyncIterator[Live]:
    """Run a live view after a pause in requests, with a snapshot older than two intervals."""
    rests, wait = asyncio.Event(), Interest.wait

    async def noted(self: Interest, most_s: float | None) -> None:
        if most_s is not None:
            rests.set()
        await wait(self, most_s)

    patch.setattr(live, "IDLE_REFRESH_S", rest_s)
    patch.setattr(Interest, "wait", noted)
    found = Live(console.tools, refresh_s=0.01)
    found.start()
    try:
        await found.snapshot()
        patch.setattr(interest, "LASTS_S", 0.0)
        await rests.wait()
        await asyncio.sleep(2.5 * found.refresh_s)  # age of the last poll
        yield found
    finally:
        await found.close()


async def test_no_polls_before_the_first_request(server: Server, waits: list[float | None]) -> None:
    async with LiveConsole(server.url) as console:
        await until(lambda: waits)
        assert waits == [None], "polling waits for the first request without a timeout"
        own = console.inside.live
        assert own.version == 0
        assert (await console.get("/queues")).status == 200
        assert own.version > 0


async def test_slow_polls_without_requests(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, waits: list[float | None]
) -> None:
    async with resting(console, monkeypatch, 3600.0) as found:
        version = found.version
        await until(lambda: waits[-1] == 3600.0)
        assert found.version == version, "polling paused without another poll"
        monkeypatch.setattr(live, "IDLE_REFRESH_S", 0.01)
        await found.snapshot()
        await until(lambda: found.version > version + 3)


async def test_first_request_after_a_pause_does_not_wait(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the first request gets the last snapshot with own changes, and the next one the current state."""
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        version, goes_on = found.version, asyncio.Event()
        found.add_hook(goes_on.wait)
        await console.fill(orders, b"one")
        async with asyncio.timeout(PATIENCE_S):
            assert (await found.snapshot()).rows["orders"].summary["ready"] == 0
        goes_on.set()
        await until(lambda: found.version > version)
        assert (await found.snapshot()).rows["orders"].summary["ready"] == 1


async def test_own_changes_are_seen_after_a_pause(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        found.add_hook(asyncio.Event().wait)  # the next poll has no end
        await console.fill(orders, b"one")
        found.touch("orders")
        async with asyncio.timeout(PATIENCE_S):
            snapshot = await found.snapshot()
        assert (snapshot.rows["orders"].summary["ready"], snapshot.totals["ready"]) == (1, 1)


async def test_old_snapshot_is_not_used(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        await console.fill(orders, b"one")
        monkeypatch.setattr(live, "IDLE_REFRESH_S", 0.0)
        assert (await found.snapshot()).rows["orders"].summary["ready"] == 1


async def test_first_request_fails_during_an_outage(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console, resting(console, monkeypatch, 0.01) as found:
        server.kill9()
        await until(lambda: found.error is not None)
        with pytest.raises(StoreUnavailable):
            await found.snapshot()


async def test_first_request_succeeds_after_an_outage(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch, waits: list[float | None]
) -> None:
    """Check that the first request after an outage succeeds without a poll in between."""
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        async with resting(console, monkeypatch, 0.01) as found:
            server.kill9()
            await until(lambda: found.error is not None)
            monkeypatch.setattr(live, "IDLE_REFRESH_S", 3600.0)
            monkeypatch.setattr(live, "FIRST_WAIT_S", 0.0)
            await until(lambda: waits[-1] == 3600.0)
            server.restart()
            assert set((await found.snapshot()).rows) == {"orders"}


async def test_shard_outage_does_not_hide_other_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a request for the touched queue fails, and the next poll shows the outage."""
    cluster = Cluster(next(iter(PROGRAMS)), tmp_path)
    try:
        await set_up(cluster.start())
        async with LiveConsole(cluster.url) as console:
            home = cluster.holder(RegistryKeys().epoch)
            away = next(node for node in cluster.nodes if node is not home)
            for name, node in (("here", home), ("there", away)):
                await console.declare(name, domain=cluster.domain_on(node))
            async with resting(console, monkeypatch, 3600.0) as found:
                away.kill9()
                found.touch("there")
                with pytest.raises(StoreUnavailable):
                    await found.snapshot()

                async def has_condition() -> bool:
                    try:
                        rows = (await found.snapshot()).rows
                    except StoreUnavailable:
                        return False
                    assert set(rows) == {"here", "there"}
                    return "cannot be read" in rows["there"].summary["condition"]

                await until(has_condition)
    finally:
        cluster.end()


async def test_requests_waiting_for_a_failing_poll_get_its_error(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that requests that wait for a failing poll get its error, without adding up their timeouts."""
    server: Server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        found = Live(console.tools, refresh_s=60)
        takes, refresh = 0, QueueListCache.refresh

        async def counted(self: QueueListCache) -> Any:
            nonlocal takes
            takes += 1
            return await refresh(self)

        monkeypatch.setattr(QueueListCache, "refresh", counted)
        server.kill9()
        results: list[Any] = await asyncio.gather(
            *(found.snapshot() for _ in range(5)), return_exceptions=True
        )
        assert [type(each) for each in results] == [StoreUnavailable] * 5
        assert takes == 1
        server.restart()

        async def is_back() -> bool:
            try:
                return set((await found.snapshot()).rows) == {"orders"}
            except StoreUnavailable:
                return False

        await until(is_back)
