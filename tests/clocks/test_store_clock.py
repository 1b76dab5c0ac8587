"""The store's clock is stepped under processes at work, both ways (docs/store.md, Clocks)."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from services.store.model.errors import QueueReserved, TooLate
from services.store.pipeline.domain import Timing
from services.store.pipeline.flight import MOST_REPEATS
from tests.clocks.clocks import Clocks
from tests.proxy import Proxy
from tests.servers import Client, Server
from tests.store.desk import Desk, bodies, until
from tests.store.lane import Lane
from tests.store.pipeline.test_replays import take
from tests.stores import every_server

SHORT = Timing(session_timeout_ms=600, beat_s=0.05, sweep_s=0.1)
HOUR_S = 3600
SOON_S = 60.0  # far less than the hour of the step
TTL_MS = 1500
steps = pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["forward", "backward"])


@pytest.fixture
async def desk(stepped: Server) -> AsyncIterator[Desk]:
    stepped.clear()
    async with Desk(stepped, timing=SHORT) as desk:
        yield desk


@pytest.fixture
def client(stepped: Server, desk: Desk) -> Iterator[Client]:
    with stepped.client() as client:
        yield client


def step_at_once(client: Client, clocks: Clocks, forward_s: int) -> None:
    """Returns once the server goes by it: Valkey keeps the time for some ms."""
    before = int(client.call("TIME")[0])
    clocks.step(forward_s)
    while int(client.call("TIME")[0]) < before + forward_s:
        pass


async def sweeps(desk: Desk, number: int) -> int:
    """Looks for dead sessions so often; how many messages went back."""
    moved = 0
    for _ in range(number):
        moved += await desk.domain.sweep()
        await asyncio.sleep(SHORT.sweep_s)
    return moved


@every_server
@steps
async def test_requests_go_on_at_once(desk: Desk, clocks: Clocks, step_s: int) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"before")
    clocks.step(step_s)
    await desk.put(queue, b"after")
    got = await desk.take(queue)
    await desk.settle(got)
    assert bodies(got) == [b"before", b"after"]
    assert (await desk.stats(queue))["in_flight"] == 0
    assert desk.refusals == {"clock_stepped": 1}


async def test_a_call_that_is_always_late_is_refused(
    desk: Desk, stepped: Server, client: Client, clocks: Clocks
) -> None:
    """The store's clock runs away: nothing was done, and that is what is said."""
    queue, calls = await desk.queue(), 0

    def step(request: bytes) -> None:
        nonlocal calls
        if b"ps1_work_timed" in request:
            calls += 1
            step_at_once(client, clocks, HOUR_S)

    async with Proxy(stepped.port) as proxy, Desk(proxy.url, initialise=False) as other:
        proxy.on_request = step
        with pytest.raises(TooLate):
            await other.put(queue, b"late")
    assert calls == 1 + MOST_REPEATS
    assert (await desk.stats(queue))["ready"] == 0


@steps
async def test_messages_of_a_killed_session_return_after_its_timeout(
    desk: Desk, client: Client, clocks: Clocks, step_s: int
) -> None:
    queue = await desk.queue(visibility_timeout="1ms")
    await desk.put(queue, b"held")
    assert len(take(Lane(client, "killed", desk.pipe.epoch), queue)) == 1
    clocks.step(step_s)
    desk.store.start_serving()
    got = await until(lambda: desk.take(queue), SOON_S)
    assert bodies(got) == [b"held"]


@steps
async def test_a_session_that_sends_heartbeats_keeps_its_messages(
    desk: Desk, clocks: Clocks, step_s: int
) -> None:
    queue = await desk.queue(visibility_timeout="1ms")
    await desk.put(queue, b"held")
    got = await desk.take(queue)
    async with desk.another() as other:
        await sweeps(other, 1)
        clocks.step(step_s)
        assert await sweeps(other, 12) == 0
    await desk.settle(got)


@steps
@pytest.mark.parametrize("claim", ["own", "reserve"])
async def test_a_claim_is_kept_for_its_time_and_no_longer(
    desk: Desk, clocks: Clocks, claim: str, step_s: int
) -> None:
    queue = await desk.queue()

    async def ask(holder: str) -> bool:
        try:
            return bool(await getattr(desk.domain.claims, claim)(queue, holder, TTL_MS))
        except QueueReserved:
            return False

    assert await ask("first")
    clocks.step(step_s)
    assert not await ask("second")
    assert await ask("first")  # renewed
    assert not await ask("second")
    await until(lambda: ask("second"), 2 * TTL_MS / 1000 + 5)


@pytest.mark.parametrize("claim", ["own", "reserve"])
async def test_a_claim_of_a_killed_holder_is_free_10_s_after_a_silence(
    desk: Desk, client: Client, clocks: Clocks, claim: str
) -> None:
    """No edge ran for an hour, and then for 7 s again and again: neither can be told from a step forward."""
    queue = await desk.queue()
    ask = getattr(desk.domain.claims, claim)
    await ask(queue, "killed", 60_000)
    for silence_s in (HOUR_S, 7, 7):
        step_at_once(client, clocks, silence_s)
        await desk.domain.tidy(queue)
    assert await ask(queue, "next", TTL_MS)


@pytest.mark.parametrize("asks", ["available", "publish"])
async def test_a_look_at_a_killed_holders_reservation_lets_it_run_out(
    desk: Desk, clocks: Clocks, asks: str
) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "killed", TTL_MS)
    clocks.step(-HOUR_S)

    async def is_free() -> bool:
        try:
            if asks == "available":
                await desk.domain.claims.available(queue, "next")
                return True
            return await desk.publish(queue, b"x") == []
        except QueueReserved:
            return False

    await until(is_free, 2 * TTL_MS / 1000 + 5)


async def test_a_claim_of_a_killed_holder_runs_out_after_a_step_back(desk: Desk, clocks: Clocks) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "killed", TTL_MS)
    clocks.step(-HOUR_S)

    async def is_free() -> bool:
        await desk.domain.tidy(
            queue
        )  # as each sweep; Valkey may run the first with the time of before the step
        return (await desk.stats(queue))["reserved_for_ms"] == 0

    await until(is_free)


async def test_a_killed_edges_lease_of_a_link_runs_out_after_a_step_back(desk: Desk, clocks: Clocks) -> None:
    key = desk.domain.keys.log_lease("neighbour")

    async def lease(holder: str) -> bool:
        return bool(await desk.domain.function("log_lease", [key], holder, TTL_MS))

    assert await lease("killed")
    clocks.step(-HOUR_S)
    assert not await lease("next")
    await until(lambda: lease("next"), SOON_S)
