"""Assignments while queues change and the store fails: kept as long as they may be, and freed (rqp_mca.md 2.3)."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from services.store import Queue, StoreUnavailable
from services.store.model.errors import OutcomeUnknown
from services.store.pipeline.claims import Claims
from services.store.pipeline.domain import Domain
from tests.live import until
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import Client

END = 99  # the number of a queue that is always available: its answer ends a silence


@pytest.fixture(autouse=True)
def renewed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message that names a queue renews its assignment."""
    monkeypatch.setattr("services.rqp.mca.assignments.RENEWALS", math.inf)


async def reserved_by(edge: LiveEdge, queue: Queue) -> str:
    return str((await edge.stats(queue))["reserved_by"])


async def test_a_pause_ends_no_assignment(edge: LiveEdge, client: Client) -> None:
    """Its connection does, and it names the queue meanwhile."""
    await edge.numbered("end", END)
    queue = await edge.numbered("orders", 1)
    await client.request(1)
    await edge.replace_numbered("orders", 1, paused=True)
    for _ in range(3):
        assert not await client.is_available(1, END)
    await edge.replace_numbered("orders", 1)
    other = await edge.client()
    assert not await other.is_available(1, END)
    client.fin()
    assert await client.rest() == b""
    assert await reserved_by(edge, queue) == ""


async def test_what_many_may_hold_from_now_on(edge: LiveEdge, client: Client) -> None:
    """`exclusive: false` is applied while somebody holds the queue."""
    await edge.numbered("end", END)
    queue = await edge.numbered("orders", 1)
    other = await edge.client()
    await client.request(1)
    assert not await other.is_available(1, END)
    await edge.replace_numbered("orders", 1, exclusive=False)
    await until(lambda: other.is_available(1, END))
    for _ in range(3):
        await client.put(1, b"a")
        await other.request(1)
        await other.put(1, b"b")
    assert await edge.bodies(queue) == [b"a", b"b"] * 3
    assert await reserved_by(edge, queue) == ""


async def test_what_many_may_hold_by_the_time_it_is_assigned(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`exclusive: false` is said while the store is asked: it is kept for nobody."""
    queue = await edge.numbered("orders", 1)
    reserve, asked, let_go = Claims.reserve, asyncio.Event(), asyncio.Event()

    async def reserve_late(self: Domain, *named: Any) -> int:
        fence = await reserve(self, *named)
        asked.set()
        await let_go.wait()
        return fence

    monkeypatch.setattr(Claims, "reserve", reserve_late)
    requested = asyncio.ensure_future(client.request(1))
    await asked.wait()
    assert await reserved_by(edge, queue)
    await edge.replace_numbered("orders", 1, exclusive=False)
    known = await edge.service.store.catalogue.numbered("rqp-mca", 1)
    await until(lambda: not known.spec.bindings.rqp_mca.exclusive)
    let_go.set()
    await requested
    assert await reserved_by(edge, queue) == ""


async def test_one_that_cannot_be_freed_keeps_no_other(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await edge.numbered("one", 1), await edge.numbered("two", 2)
    await client.request(1)
    await client.request(2)
    release = Claims.release_reservation

    async def fail_first(self: Domain, queue: Queue, *named: Any) -> bool:
        if queue.qid == one.qid:
            raise StoreUnavailable
        return await release(self, queue, *named)

    monkeypatch.setattr(Claims, "release_reservation", fail_first)
    client.fin()
    assert await client.rest() == b""
    assert (await reserved_by(edge, one)).startswith("mca rqp-")
    assert await reserved_by(edge, two) == ""
    monkeypatch.undo()
    await edge.tools.open_domain().claims.release_reservation(one, await reserved_by(edge, one), 1)


async def test_a_renewal_that_comes_after_the_end_is_freed_too(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two are asked of the store on different connections."""
    queue = await edge.numbered("orders", 1)
    await client.request(1)
    reserve, let_go = Claims.reserve, asyncio.Event()
    late: list[int] = []

    async def reserve_late(self: Domain, *named: Any) -> int:
        await let_go.wait()
        late.append(await reserve(self, *named))
        return late[-1]

    monkeypatch.setattr(Claims, "reserve", reserve_late)
    await client.put(1, b"hello")
    client.fin()
    assert await client.rest() == b""
    assert await reserved_by(edge, queue) == ""
    let_go.set()
    await until(lambda: late)

    async def is_free() -> bool:
        return not await reserved_by(edge, queue)

    await until(is_free)


async def test_who_holds_it(edge: LiveEdge, client: Client) -> None:
    """docs/rqp.md: the edge, its connection, the sender's address and port."""
    queue = await edge.numbered("orders", 1)
    await client.request(1)
    host, port = client.writer.get_extra_info("sockname")
    words = (await reserved_by(edge, queue)).split()
    assert words[:2] == ["mca", edge.service.name]
    assert words[-1] == f"{host}:{port}"


async def test_an_assignment_whose_answer_was_lost_is_freed(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store had granted it, and the connection never learns that."""
    queue = await edge.numbered("orders", 1)
    await edge.numbered("end", END)
    reserve = Claims.reserve
    was_granted = []

    async def lose(self: Domain, *args: Any) -> int:
        monkeypatch.setattr(Claims, "reserve", reserve)
        was_granted.append(await reserve(self, *args))
        raise OutcomeUnknown

    monkeypatch.setattr(Claims, "reserve", lose)
    asking = asyncio.create_task(client.request(1))
    await until(lambda: was_granted)

    async def is_free() -> bool:
        return await reserved_by(edge, queue) == ""

    await until(is_free)
    other = await edge.client()
    assert await other.is_available(1, END)
    asking.cancel()
    await asyncio.wait((asking,))
