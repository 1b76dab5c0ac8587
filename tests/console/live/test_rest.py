"""What is looked at while nobody wants to know, and the first question after that."""

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
    """For how long looks have waited for somebody who wants to know, until now; None: however long."""
    found: list[float | None] = []
    real = Interest.wait

    async def noted(self: Interest, most_s: float | None) -> None:
        found.append(most_s)
        await real(self, most_s)

    monkeypatch.setattr(Interest, "wait", noted)
    return found


@asynccontextmanager
async def resting(console: LiveConsole, patch: pytest.MonkeyPatch, rest_s: float) -> AsyncIterator[Live]:
    """Somebody had asked, and nobody has for a while: what is known is older than two refreshes."""
    rests, wait = asyncio.Event(), Interest.wait

    async def noted(self: Interest, most_s: float | None) -> None:
        if most_s is not None:
            rests.set()
        await wait(self, most_s)

    patch.setattr(live, "REST_S", rest_s)
    patch.setattr(Interest, "wait", noted)
    found = Live(console.tools, refresh_s=0.01)
    found.start()
    try:
        await found.look()
        patch.setattr(interest, "LASTS_S", 0.0)
        await rests.wait()
        await asyncio.sleep(2.5 * found.refresh_s)  # so old is the last look then
        yield found
    finally:
        await found.close()


async def test_nothing_is_looked_at_before_anybody_asks(server: Server, waits: list[float | None]) -> None:
    async with LiveConsole(server.url) as console:
        await until(lambda: waits)
        assert waits == [None], "it waits for the first question, however long that takes"
        own = console.inside.live
        assert own.version == 0
        assert (await console.get("/queues")).status == 200
        assert own.version > 0


async def test_and_seldom_when_nobody_does_any_more(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, waits: list[float | None]
) -> None:
    async with resting(console, monkeypatch, 3600.0) as found:
        version = found.version
        await until(lambda: waits[-1] == 3600.0)
        assert found.version == version, "nothing was looked at before it began to rest"
        monkeypatch.setattr(live, "REST_S", 0.01)
        await found.look()
        await until(lambda: found.version > version + 3)


async def test_the_first_question_waits_for_no_look(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told what is known, with what we changed ourselves; the next one is told what is now."""
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        version, goes_on = found.version, asyncio.Event()
        found.along(goes_on.wait)
        await console.fill(orders, b"one")
        async with asyncio.timeout(PATIENCE_S):
            assert (await found.look()).rows["orders"].summary["ready"] == 0
        goes_on.set()
        await until(lambda: found.version > version)
        assert (await found.look()).rows["orders"].summary["ready"] == 1


async def test_what_we_changed_is_seen_before_that(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        found.along(asyncio.Event().wait)  # the next look has no end
        await console.fill(orders, b"one")
        found.touch("orders")
        async with asyncio.timeout(PATIENCE_S):
            look = await found.look()
        assert (look.rows["orders"].summary["ready"], look.totals["ready"]) == (1, 1)


async def test_what_is_too_old_is_not_told(console: LiveConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = await console.declare("orders")
    async with resting(console, monkeypatch, 3600.0) as found:
        await console.fill(orders, b"one")
        monkeypatch.setattr(live, "REST_S", 0.0)
        assert (await found.look()).rows["orders"].summary["ready"] == 1


async def test_while_the_store_is_away_the_first_question_is_told_so(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console, resting(console, monkeypatch, 0.01) as found:
        server.kill9()
        await until(lambda: found.trouble is not None)
        with pytest.raises(StoreUnavailable):
            await found.look()


async def test_once_it_is_back_the_first_question_is_answered(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch, waits: list[float | None]
) -> None:
    """Though nobody has looked since: that it was away is no answer any more."""
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        async with resting(console, monkeypatch, 0.01) as found:
            server.kill9()
            await until(lambda: found.trouble is not None)
            monkeypatch.setattr(live, "REST_S", 3600.0)
            monkeypatch.setattr(live, "SOON_S", 0.0)
            await until(lambda: waits[-1] == 3600.0)
            server.restart()
            assert set((await found.look()).rows) == {"orders"}


async def test_a_shard_that_is_away_is_told_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question for what we changed there fails; so somebody wants to know, and the next look says how it is."""
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
                    await found.look()

                async def is_told() -> bool:
                    try:
                        rows = (await found.look()).rows
                    except StoreUnavailable:
                        return False
                    assert set(rows) == {"here", "there"}
                    return "cannot be read" in rows["there"].summary["condition"]

                await until(is_told)
    finally:
        cluster.end()


async def test_who_waits_while_a_look_fails_takes_its_error(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that stands still keeps each waiting as long as one, not one behind the other."""
    server: Server = await new_server()
    async with LiveConsole(server.url) as console:
        await console.declare("orders")
        found = Live(console.tools, refresh_s=60)
        takes, look = 0, QueueListCache.refresh

        async def counted(self: QueueListCache) -> Any:
            nonlocal takes
            takes += 1
            return await look(self)

        monkeypatch.setattr(QueueListCache, "refresh", counted)
        server.kill9()
        told: list[Any] = await asyncio.gather(*(found.look() for _ in range(5)), return_exceptions=True)
        assert [type(each) for each in told] == [StoreUnavailable] * 5
        assert takes == 1
        server.restart()

        async def is_back() -> bool:
            try:
                return set((await found.look()).rows) == {"orders"}
            except StoreUnavailable:
                return False

        await until(is_back)
