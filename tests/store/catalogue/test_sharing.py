"""Many who look for the same queue at once share one look, and nobody is told what was so before he asked."""

from __future__ import annotations

import asyncio

import pytest

from services.store import QueueSpec
from services.store.catalogue.sharing import Sharing
from services.store.model.errors import QueueUnknown, StoreUnavailable
from tests.store.desk import Desk, until


class Looks:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[str]] = []
        self.sharing = Sharing(self._look)

    async def _look(self, name: str) -> str:
        self.begun.append(asyncio.get_running_loop().create_future())
        return f"{name}: {await self.begun[-1]}"

    async def number(self, number: int) -> asyncio.Future[str]:
        await until(lambda: len(self.begun) >= number)
        return self.begun[number - 1]


async def test_who_asks_while_a_look_is_under_way_gets_the_next() -> None:
    looks = Looks()
    first = asyncio.create_task(looks.sharing.ask("q"))
    (await looks.number(1)).set_result("old")
    assert await first == "q: old"
    second = asyncio.create_task(looks.sharing.ask("q"))
    under_way = await looks.number(2)
    later = [asyncio.create_task(looks.sharing.ask("q")) for _ in range(100)]
    other = asyncio.create_task(looks.sharing.ask("another"))
    (await looks.number(3)).set_result("its own")
    assert await other == "another: its own"
    under_way.set_result("before")
    assert await second == "q: before"
    (await looks.number(4)).set_result("after")
    assert await asyncio.gather(*later) == ["q: after"] * 100
    assert len(looks.begun) == 4


async def test_one_who_goes_takes_nobody_with_him() -> None:
    looks = Looks()
    gone, stays = (asyncio.create_task(looks.sharing.ask("q")) for _ in range(2))
    under_way = await looks.number(1)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    under_way.set_exception(QueueUnknown("there is none"))
    with pytest.raises(QueueUnknown):
        await stays


async def test_a_close_tells_those_who_wait_and_those_who_ask_later() -> None:
    looks = Looks()
    first = asyncio.create_task(looks.sharing.ask("q"))
    await looks.number(1)
    second = asyncio.create_task(looks.sharing.ask("q"))
    await asyncio.sleep(0)
    await looks.sharing.close()
    assert [type(end) for end in await asyncio.gather(first, second, return_exceptions=True)] == [
        StoreUnavailable
    ] * 2
    with pytest.raises(StoreUnavailable, match="stopping"):
        await looks.sharing.ask("q")
    assert len(looks.begun) == 1


async def test_thousands_of_opens_of_one_queue_cost_the_store_a_few_questions(desk: Desk) -> None:
    queue, _ = await desk.store.catalogue.declare("q", QueueSpec(), "test")
    before = await questions(desk)
    found = await asyncio.gather(*(desk.store.catalogue.find("q") for _ in range(2_000)))
    assert {each.qid for each in found} == {queue.qid}
    assert len({id(each) for each in found}) == 1
    assert await questions(desk) - before < 20


async def questions(desk: Desk) -> int:
    """Commands that the store has carried out."""
    info = (await desk.store.registry.link.call("INFO", "stats")).decode()
    return int(info.partition("total_commands_processed:")[2].split("\r\n")[0])
