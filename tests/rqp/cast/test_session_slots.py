"""Questions wait in order for a session slot (rqp_cast.md 1.2)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator

import pytest

from services.rqp.cast.ports import session_slots
from services.rqp.cast.ports.ports import PeerKey, Port, Ports
from services.rqp.cast.ports.session_slots import SessionSlots
from services.rqp.cast.settings import CastSettings
from services.store.pipeline.claims import Claims
from tests.live import PATIENCE_S, until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, ended, is_reserved, keyed, port_range, unanswered

ONE, OTHER, THIRD = PeerKey("10.0.0.1", 1), PeerKey("10.0.0.2", 2), PeerKey("10.0.0.3", 3)
LONG_S = 600.0


class Bench:
    """Two ports, shared by two processes of one machine."""

    def __init__(self) -> None:
        numbers = CastSettings(receiver_ports=port_range(2)).receiver_range
        self.ports, self.elsewhere = Ports(HERE, numbers, LONG_S), Ports(HERE, numbers, LONG_S)
        self.slots = SessionSlots(1, self.ports)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def two(self, peer: PeerKey, wait_s: float = PATIENCE_S) -> tuple[Port, Port] | None:
        return await self.slots.ports(peer, self.now() + wait_s)

    async def waits(self, peer: PeerKey) -> asyncio.Task[tuple[Port, Port] | None]:
        waiting = self.slots.waiting
        task = asyncio.create_task(self.two(peer))
        await until(lambda: self.slots.waiting == waiting + 1)
        return task


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.ports.close()
    bench.elsewhere.close()


def close(found: tuple[Port, Port] | None, rests: bool = False) -> None:
    assert found is not None
    for port in found:
        port.close(rests)


async def test_new_question_is_served_after_waiting_ones(bench: Bench) -> None:
    found = await bench.two(ONE)
    waiting = await bench.waits(OTHER)
    close(found)
    assert await bench.two(THIRD, 0.0) is None
    close(await waiting)
    close(await bench.two(THIRD, 0.0))


async def test_new_question_gets_ports_that_waiters_cannot_use(bench: Bench) -> None:
    """Check that a new question gets ports that rest for the waiters."""
    close(await bench.two(ONE), rests=True)
    waiting = await bench.waits(ONE)
    close(await bench.two(OTHER, 0.0))
    assert not waiting.done()
    waiting.cancel()


async def test_slots_of_an_address_are_served_in_order(bench: Bench) -> None:
    places = bench.slots
    assert await places.take(HERE, bench.now())
    assert not await places.take(HERE, bench.now())
    first = asyncio.create_task(places.take(HERE, bench.now() + PATIENCE_S))
    await until(lambda: places.waiting == 1)
    places.leave(HERE)
    assert not await places.take(HERE, bench.now()), "the first one gets it"
    assert await first


async def test_waiters_are_served_in_order(bench: Bench) -> None:
    """Check that waiters are served in the order in which they came, one slot at a time."""
    found = await bench.two(ONE)
    first, second = await bench.waits(OTHER), await bench.waits(THIRD)
    close(found)
    found = await first
    assert not second.done()
    close(found)
    close(await second)


async def test_cancelled_waiter_gives_back_its_ports(bench: Bench) -> None:
    """Check that a waiter cancelled when it gets its ports gives them back."""
    found = await bench.two(ONE)
    waiting = await bench.waits(OTHER)
    close(found)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    close(await bench.two(THIRD, 0.0))


async def test_single_port_is_given_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a single port is given back after any error of the second."""
    opened: list[Port | None] = []

    def fail_second(ports: Ports, peer: PeerKey) -> Port | None:
        opened.append(open_one(ports, peer) if not opened else None)
        if len(opened) == 2:
            raise OSError(errno.EIO, "a fault of the machine")
        return opened[-1]

    open_one = Ports.open
    with monkeypatch.context() as patched:
        patched.setattr(Ports, "open", fail_second)
        with pytest.raises(OSError, match="a fault of the machine"):
            await bench.two(ONE, 0.0)
    assert bench.ports.has(2)
    close(await bench.two(ONE, 0.0))


async def test_ports_freed_by_another_process_are_found(bench: Bench) -> None:
    """Check that ports freed by another process are found by polling: there is no notification."""
    theirs = [bench.elsewhere.open(OTHER) for _ in range(2)]
    waiting = await bench.waits(ONE)
    for port in theirs:
        assert port is not None
        port.close(rests=False)
    close(await waiting)


@pytest.mark.parametrize("wait_s", [0.0, 0.05])
async def test_ports_freed_by_another_process_are_served_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    """Check that ports freed by another process are served in order, before new or expired questions."""
    monkeypatch.setattr(session_slots, "RETRY_S", LONG_S)
    theirs = [bench.elsewhere.open(OTHER) for _ in range(2)]
    first = await bench.waits(ONE)
    second = asyncio.create_task(bench.two(THIRD, wait_s))
    if wait_s:
        await until(lambda: bench.slots.waiting == 2)
    for port in theirs:
        assert port is not None
        port.close(rests=False)
    assert await second is None
    close(await first)


async def test_waiter_gets_ports_after_their_rest(machines: Machines, hands: HandSender) -> None:
    edge = await machines.receiver(
        receiver_ports=port_range(2), port_rest_s=1.0, t_wait2_s=0.3, t_wait1_s=60.0
    )
    await keyed(edge)
    await hands.asked()
    await until(lambda: ended(edge, "timed_out_wait_for_approval") == 1)
    assert (await hands.asked()).key == 7


async def test_question_is_served_after_waiting_ones(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a question is served after waiting ones, even if the store reports the free queue late."""
    edge = await machines.receiver(receiver_ports=port_range(2), t_wait1_s=60.0)
    for key in (7, 8, 9):
        await keyed(edge, f"queue {key}", key=key)
    release, may_release = Claims.release_reservation, asyncio.Event()

    async def slow(*args: object) -> object:
        await may_release.wait()
        return await release(*args)  # type: ignore[arg-type]

    offer = await hands.asked(7)
    places = agent(edge).questions.sessions.slots
    with HandSender(machines.net, "127.0.0.5") as first, HandSender(machines.net, "127.0.0.6") as second:
        first.ask(8)
        await until(lambda: places.waiting == 1)
        monkeypatch.setattr(Claims, "release_reservation", slow)
        await hands.say(offer.accept_port, b"")
        ports = agent(edge).questions.sessions.ports
        await until(lambda: not places.waiting or ports.has(2))
        second.ask(9)
        offer = await first.answer()
        may_release.set()
        await until(lambda: places.waiting == 1)
        await first.say(offer.accept_port, b"")
        assert (await second.answer()).key == 9


async def test_queue_is_not_reserved_while_waiting_for_ports(machines: Machines, hands: HandSender) -> None:
    """Check that a queue is not reserved while waiting for ports: another process with ports may answer."""
    numbers = port_range(2)
    edge = await machines.receiver(receiver_ports=numbers, t_wait1_s=60.0)
    queue = await keyed(edge)
    other = Ports(THERE, CastSettings(receiver_ports=numbers).receiver_range, 1.0)
    theirs = [other.open() for _ in range(2)]
    hands.ask()
    await until(lambda: agent(edge).questions.sessions.slots.waiting == 1)
    assert not await is_reserved(edge, queue)
    for port in theirs:
        assert port is not None
        port.close(rests=False)
    assert (await hands.answer()).key == 7


async def test_unknown_keys_do_not_wait_for_ports(machines: Machines, hands: HandSender) -> None:
    """Check that unknown keys are counted as `unknown_key` at once, while others wait for ports."""
    edge = await machines.receiver(receiver_ports=port_range(2), t_wait1_s=60.0)
    await keyed(edge)
    await keyed(edge, "other", key=8)
    offer = await hands.asked(7)
    waits = agent(edge).questions.sessions.slots
    with HandSender(machines.net, "127.0.0.5") as other:
        other.ask(8)
        await until(lambda: waits.waiting == 1)
        for key in range(1000, 1030):
            hands.ask(key)
        await until(lambda: unanswered(edge, "unknown_key") == 30)
        assert waits.waiting == 1
        await hands.say(offer.accept_port, b"")
        assert (await other.answer()).key == 8
