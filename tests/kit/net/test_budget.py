"""Test the memory budget of all connections."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from services.kit.net.budget import Budget
from tests.kit.echo_edge import frame
from tests.kit.harness import Server, until


@dataclass(eq=False)
class Holder:
    budget: Budget
    evicted: int = 0

    def evict(self) -> None:
        self.evicted += 1
        self.budget.hold(self.evict, 0)


def test_largest_holder_is_evicted_first() -> None:
    budget = Budget(100)
    small, big, newest = Holder(budget), Holder(budget), Holder(budget)
    budget.hold(small.evict, 30)
    budget.hold(big.evict, 60)
    budget.hold(newest.evict, 20)
    assert (small.evicted, big.evicted, newest.evicted) == (0, 1, 0)
    assert budget.total == 50


def test_eviction_stops_below_the_limit() -> None:
    budget = Budget(100)
    holders = [Holder(budget) for _ in range(10)]
    for holder in holders:
        budget.hold(holder.evict, 10)
    newest = Holder(budget)
    budget.hold(newest.evict, 95)
    assert newest.evicted == 1
    assert budget.total == 100
    budget.hold(newest.evict, 9)
    assert sum(holder.evicted for holder in holders) == 1


def test_holding_replaces_the_previous_size() -> None:
    budget = Budget(100)
    holder = Holder(budget)
    for size in (10, 90, 40, 40, 0, 0):
        budget.hold(holder.evict, size)
        assert budget.total == size


async def test_connections_with_large_frames_are_evicted_first(caplog: pytest.LogCaptureFixture) -> None:
    async with Server(budget=2_000_000) as server:
        greedy = [await server.client() for _ in range(3)]
        for number, client in enumerate(greedy[:2]):
            client.send(frame(b"E", bytes(900_000 + number))[:-1])  # one byte short of whole
            session = await server.session(number)
            await until(lambda session=session, wanted=900_004 + number: session.buffered == wanted)
        greedy[2].send(frame(b"E", bytes(300_000))[:-1])
        # not the connection that exceeded the budget, but the largest one
        assert await greedy[1].ended() == "reset"
        assert server.refusals("input_budget") == 1
        await until(lambda: server.budget.total == 900_004 + 300_004)
        modest = await server.client()
        modest.send(frame(b"E", b"half")[:6])
        await server.session(3)
        modest.send(frame(b"E", b"half")[6:])
        assert await modest.answer() == b"half"
        greedy[0].send(b"\0")
        assert len(await greedy[0].answer()) == 900_000
        assert server.budget.total == 300_004
        (record,) = [vars(r) for r in caplog.records if vars(r).get("reason") == "input_budget"]
        assert record["detail"].startswith("held ")
