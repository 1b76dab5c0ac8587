"""Assignments while queues change and the store fails: kept as long as possible, then freed (rqp_mca.md 2.3)."""

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
    """Make each message that names a queue renew its assignment."""
    monkeypatch.setattr("services.rqp.mca.assignments.RENEWALS", math.inf)


async def reserved_by(edge: LiveEdge, queue: Queue) -> str:
    return str((await edge.stats(queue))["reserved_by"])


async def test_paused_queue_stays_assigned(edge: LiveEdge, client: Client) -> None:
    """Check that a paused queue stays assigned to its connection, which names it meanwhile."""
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


async def test_assignment_ends_when_the_queue_becomes_non_exclusive(edge: LiveEdge, client: Client) -> None:
    """Check that an assignment ends when `exclusive: false` is set."""
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


async def test_queue_that_became_non_exclusive_is_not_assigned(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a queue that gets `exclusive: false` during the call to the store is not assigned."""
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


async def test_failed_release_does_not_affect_others(
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


async def test_renewal_after_the_end_is_released(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a renewal after the end is released: the two use different store connections."""
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


async def test_holder_is_shown(edge: LiveEdge, client: Client) -> None:
    """Check that the holder is shown: edge, connection, the sender's address and port (docs/rqp-mca.md)."""
    queue = await edge.numbered("orders", 1)
    await client.request(1)
    host, port = client.writer.get_extra_info("sockname")
    words = (await reserved_by(edge, queue)).split()
    assert words[:2] == ["mca", edge.service.name]
    assert words[-1] == f"{host}:{port}"


async def test_assignment_with_a_lost_answer_is_released(
    edge: LiveEdge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an assignment with a lost answer is released: the store granted it unnoticed."""
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
