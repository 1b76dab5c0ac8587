"""Concurrent requests share a lookup that starts after them."""

from __future__ import annotations

import asyncio

import pytest

from services.store import QueueSpec
from services.store.catalogue.sharing import Sharing
from services.store.model.errors import QueueUnknown, StoreUnavailable
from tests.store.desk import Desk, until


class Lookups:
    """A lookup that completes on demand."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[str]] = []
        self.sharing = Sharing(self._lookup)

    async def _lookup(self, name: str) -> str:
        self.begun.append(asyncio.get_running_loop().create_future())
        return f"{name}: {await self.begun[-1]}"

    async def number(self, number: int) -> asyncio.Future[str]:
        await until(lambda: len(self.begun) >= number)
        return self.begun[number - 1]


async def test_request_during_a_lookup_gets_the_next_one() -> None:
    lookups = Lookups()
    first = asyncio.create_task(lookups.sharing.ask("q"))
    (await lookups.number(1)).set_result("old")
    assert await first == "q: old"
    second = asyncio.create_task(lookups.sharing.ask("q"))
    under_way = await lookups.number(2)
    later = [asyncio.create_task(lookups.sharing.ask("q")) for _ in range(100)]
    other = asyncio.create_task(lookups.sharing.ask("another"))
    (await lookups.number(3)).set_result("its own")
    assert await other == "another: its own"
    under_way.set_result("before")
    assert await second == "q: before"
    (await lookups.number(4)).set_result("after")
    assert await asyncio.gather(*later) == ["q: after"] * 100
    assert len(lookups.begun) == 4


async def test_cancelled_request_does_not_affect_others() -> None:
    lookups = Lookups()
    gone, stays = (asyncio.create_task(lookups.sharing.ask("q")) for _ in range(2))
    under_way = await lookups.number(1)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    under_way.set_exception(QueueUnknown("no such queue"))
    with pytest.raises(QueueUnknown):
        await stays


async def test_close_fails_current_and_later_requests() -> None:
    lookups = Lookups()
    first = asyncio.create_task(lookups.sharing.ask("q"))
    await lookups.number(1)
    second = asyncio.create_task(lookups.sharing.ask("q"))
    await asyncio.sleep(0)
    await lookups.sharing.close()
    assert [type(end) for end in await asyncio.gather(first, second, return_exceptions=True)] == [
        StoreUnavailable
    ] * 2
    with pytest.raises(StoreUnavailable, match="stopping"):
        await lookups.sharing.ask("q")
    assert len(lookups.begun) == 1


async def test_thousands_of_opens_share_few_store_calls(desk: Desk) -> None:
    queue, _ = await desk.store.catalogue.declare("q", QueueSpec(), "test")
    before = await questions(desk)
    found = await asyncio.gather(*(desk.store.catalogue.find("q") for _ in range(2_000)))
    assert {each.qid for each in found} == {queue.qid}
    assert len({id(each) for each in found}) == 1
    assert await questions(desk) - before < 20


async def questions(desk: Desk) -> int:
    """Return the number of commands that the store has executed."""
    info = (await desk.store.registry.link.call("INFO", "stats")).decode()
    return int(info.partition("total_commands_processed:")[2].split("\r\n")[0])
