"""What a node sends to its successor, and what becomes of that (ring.md 2.2, 2.6, 4.5)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest

from protos.ring import HeadState
from services.kit.dns.lookup import ResolvedAddress
from services.kit.net.dialler import Dialler
from services.ring.node.discovery import reach
from tests.kit.calls import deaf
from tests.live import PATIENCE_S, until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode
from tests.ring.links.peers import Tail, Wire, find_beacon, leader, link_broken, tell, user

NEVER = 1000.0
QUIET = {"idle_s": NEVER, "silence_s": 2 * NEVER}


@pytest.fixture
async def node(start: Start) -> LiveNode:
    """It says that it is there only once, so that nothing else stands between the messages."""
    return await start(times=QUIET)


async def linked(node: LiveNode, tail: Tail, port: int) -> Wire:
    """All that a node says to a new successor has been answered."""
    after = await tail.called_by_node(GROUP, port)
    assert await after.message() == leader(node.name, 0), "2.6: before all else"
    after.say(b"A")
    await until(lambda: node.successor == tail.name)
    outbound = node.station.outbound
    assert outbound is not None
    while not outbound.is_answered:
        await after.message()
        after.say(b"A")
        await asyncio.sleep(0.01)
    return after


async def test_one_at_a_time_unless_told_otherwise(node: LiveNode, port: int) -> None:
    """2.2: an original reads the next one after its `A`"""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        assert await after.is_silent()
        after.say(b"A")
        assert await after.message() == user(b"two")
        after.say(b"A")
        await until(lambda: node.carrier.acknowledged == [b"one", b"two"])


async def test_as_many_at_a_time_as_the_window_has(start: Start, port: int) -> None:
    """2.2"""
    node = await start(window=64, times=QUIET)
    async with Tail() as tail:
        after = await linked(node, tail, port)
        sent = [b"%d" % n for n in range(100)]
        node.carrier.put(*sent)
        for payload in sent[:64]:
            assert await after.message() == user(payload)
        assert await after.is_silent()
        after.say(b"A" * 10)
        for payload in sent[64:74]:
            assert await after.message() == user(payload)
        assert await after.is_silent()
        assert max(node.carrier.asked) == 64
        after.say(b"A" * 64)
        for payload in sent[74:]:
            assert await after.message() == user(payload)
        after.say(b"A" * 26)
        await until(lambda: node.carrier.acknowledged == sent)
        assert node.carrier.returned == []


async def test_what_is_unanswered_when_the_link_breaks_goes_on_the_next_one_in_order(
    start: Start, port: int
) -> None:
    """2.2, 4.5: at least once"""
    node = await start(window=8, times={**QUIET, "own_ring_s": 0.1})
    sent = [b"%d" % n for n in range(20)]
    async with Tail() as tail, Tail(suffix=b"2") as other:
        after = await linked(node, tail, port)
        node.carrier.put(*sent)
        for payload in sent[:8]:
            assert await after.message() == user(payload)
        after.say(b"AAA")
        await until(lambda: len(node.carrier.acknowledged) == 3)
        after.close()
        await until(lambda: node.station.outbound is None)
        assert list(node.carrier.waiting) == sent[3:]
        assert node.number("messages_returned_total", type="user") == 8
        again = await linked_meanwhile(node, other, port)
        for payload in sent[3:]:
            assert await again.message() == user(payload)
            again.say(b"A")
        await until(lambda: node.carrier.acknowledged == sent)


async def linked_meanwhile(node: LiveNode, tail: Tail, port: int) -> Wire:
    """The same with messages waiting: its first `A` lets them go, LOOPs before them."""
    after = await tail.called_by_node(GROUP, port)
    assert await after.message() == leader(node.name, 0)
    after.say(b"A")
    return after


async def test_loops_go_first(node: LiveNode, port: int) -> None:
    """2.2: as soon as there is room"""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        before = await Wire.to(node.places["ring"])
        node.adopt(before.close)
        before.say(link_broken(b"somebody", 9))
        await before.hears(b"A")
        after.say(b"A")
        loops = [await after.message()]
        while loops[-1][:4] == b"LOOP":
            after.say(b"A")
            loops.append(await after.message())
        assert loops.pop() == user(b"two")
        assert link_broken(b"somebody", 8) in loops


async def test_loops_that_were_unanswered_go_again_but_not_that_it_is_there(
    node: LiveNode, port: int
) -> None:
    """2.2, 2.6: Leader(me) with TTL 0 was for that link only"""
    async with Tail() as tail, Tail(suffix=b"2") as other:
        first = await tail.called_by_node(GROUP, port)
        assert await first.message() == leader(node.name, 0)
        first.say(b"A")
        assert await first.message() == link_broken(node.name, 255), "of its start (3.5)"
        first.close()
        await until(lambda: node.station.outbound is None)
        second = await other.called_by_node(GROUP, port)
        assert await second.message() == leader(node.name, 0)
        second.say(b"A")
        assert await second.message() == link_broken(node.name, 255)


async def test_never_an_answer(start: Start, port: int) -> None:
    """4.5: the link is broken in time, and what it had returns"""
    node = await start(times={**QUIET, "ack_s": 0.5})
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one")
        assert await after.message() == user(b"one")
        assert await after.rest() == b""
        await until(lambda: node.station.outbound is None)
        last = node.station.node.last_break
        assert last is not None
        assert (last.side, last.why) == ("outbound", "no answer in time")
        assert node.refusals()["ack_timeout"] == 1
        assert list(node.carrier.waiting) == [b"one"]
        assert node.number("breaks_total", side="outbound", reason="ack_timeout") == 1


async def test_who_accepts_and_says_nothing_gets_no_user_message(start: Start, port: int) -> None:
    """3.6: no successor before its first `A`; then it is passed over, and another one is heard. There is room for it"""
    node = await start(window=8, times={"ack_s": 0.5, "open_s": 60.0, "vain_s": 150.0})
    node.carrier.put(b"one")
    async with Tail() as mute, Tail(suffix=b"2") as other:
        first = await mute.called_by_node(GROUP, port)
        assert await first.message() == leader(node.name, 0)
        assert b"USER" not in await first.rest()
        await until(lambda: node.station.outbound is None)
        assert node.station.node.breaks == 0
        assert node.carrier.returned == node.carrier.asked == []
        mute.announce(GROUP, port)
        second = await linked_meanwhile(node, other, port)
        while (found := await second.message()) != user(b"one"):
            assert found[:4] == b"LOOP"
            second.say(b"A")
        assert mute.has_nobody


@pytest.mark.parametrize(("answer", "reason"), [(b"AX", "not_an_ack"), (b"AA", "ack_for_nothing")])
async def test_answers_that_are_none(node: LiveNode, port: int, answer: bytes, reason: str) -> None:
    """2.5: what was acknowledged before counts"""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one")
        assert await after.message() == user(b"one")
        after.say(answer)
        await after.ended()
        await until(lambda: node.station.outbound is None)
        assert node.carrier.acknowledged == [b"one"]
        assert node.refusals()[reason] == 1


async def test_an_answer_too_many_is_not_that_of_the_next_message(node: LiveNode, port: int) -> None:
    """2.5: what waits is sent only once all answers are counted, and so is kept"""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        after.say(b"AA")
        assert await after.rest() == b""
        await until(lambda: node.station.outbound is None)
        assert node.carrier.acknowledged == [b"one"]
        assert list(node.carrier.waiting) == [b"two"]


async def test_a_node_that_ends_says_no_link_broken(node: LiveNode, port: int) -> None:
    """2.3: nobody would be there to stop it; what is under way is answered, then comes the FIN"""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        before = await Wire.to(node.places["ring"])
        node.adopt(before.close)
        before.say(user(b"one"))
        await before.hears(b"A")
        assert await after.message() == leader(node.name, 255), "4.2: somebody has connected"
        after.say(b"A")
        assert await after.message() == user(b"one")
        stopping = asyncio.ensure_future(node.member.stop_taking())
        assert await before.rest() == b""
        after.say(b"A")
        await stopping
        assert await after.rest() == b""
        assert node.carrier.acknowledged == [b"one"]


async def test_it_says_that_it_is_there(start: Start, port: int) -> None:
    """2.6: 10 s after it sent something last, here 0.1"""
    node = await start(times={"idle_s": 0.1})
    async with Tail() as tail:
        after = await linked_meanwhile(node, tail, port)
        seen = []
        while seen.count(leader(node.name, 0)) < 3:
            seen.append(await after.message())
            after.say(b"A")


async def test_nobody_there(node: LiveNode, port: int) -> None:
    """3.6: the head goes on listening, and hears others"""
    async with Tail() as gone:
        pass
    gone.announce(GROUP, port)
    await until(lambda: node.number("dials_total", result="failed") == 1)
    assert node.station.node.head.state is HeadState.LISTENING
    async with Tail(suffix=b"2") as tail:
        await linked(node, tail, port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_host_of_a_name_is_before_the_colon(node: LiveNode, port: int, host: str) -> None:
    """1.2: an address, or a name that is looked up; whatever else stands in the name"""
    async with Tail(host, b"4711:and:more") as tail:
        await linked(node, tail, port)


@pytest.mark.parametrize("node_name", [b"no-such-host.invalid:1", b"a" * 70 + b".invalid:1"])
async def test_a_name_that_nobody_can_look_up(node: LiveNode, port: int, node_name: bytes) -> None:
    """1.2"""
    async with Tail() as tail:
        tail.name = node_name
        tail.announce(GROUP, port)
        await until(lambda: node.number("dials_total", result="failed") == 1)
        assert tail.has_nobody


async def test_only_allowed_addresses_are_dialled(start: Start, port: int) -> None:
    """Whoever sends beacons could else have a node connect to anything."""
    node = await start(allow=["127.0.0.1", "10.0.0.0/8"])
    async with Tail() as tail:
        tail.name = b"192.0.2.77:1"
        tail.announce(GROUP, port)
        await until(lambda: node.number("dials_total", result="not_allowed") == 1)
        tail.name = b"127.0.0.1:1"
        assert await tail.called_by_node(GROUP, port)


async def test_each_of_a_hosts_addresses_has_its_turn(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.6: the time for a connect is for all of them, and the first that says nothing does not take all of it"""

    async def several(*_: Any) -> list[ResolvedAddress]:
        """Nobody can count on having such a name here."""
        places = [("127.0.0.1", silent), ("127.0.0.1", tail.port)]
        return [(int(socket.AF_INET), place) for place in places]

    monkeypatch.setattr(reach, "look_up", several)
    node = await start(dial={"connect_timeout_s": 1.0})
    async with Tail("several.test") as tail:
        with deaf() as silent:
            after = await tail.called_by_node(GROUP, port)
            assert await after.message() == leader(node.name, 0)
    assert node.number("dials_total", result="failed") == 0


async def test_a_connection_that_comes_after_it_was_given_up(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.6, 4.7: it is closed at once and is nobody's; the next one is another matter"""
    node = await start(times={"self_s": 60.0})
    connect, is_asked, may = Dialler.connect, asyncio.Event(), asyncio.Event()

    async def slow(dialler: Dialler, *asked: Any) -> None:
        """Dial once it may, whether or not the connection is still wanted then."""
        is_asked.set()
        with contextlib.suppress(asyncio.CancelledError):
            await may.wait()
        await connect(dialler, *asked)

    async with Tail() as tail:
        with monkeypatch.context() as patched:
            patched.setattr(Dialler, "connect", slow)
            tail.announce(GROUP, port)
            await asyncio.wait_for(is_asked.wait(), PATIENCE_S)
            node.station.store_away("a test")
        late = await tail.predecessor()
        assert await late.ended()
        assert node.station.outbound is None
        assert node.number("dials_total", result="connected") == 0
        await until(lambda: not node.station.node.is_away)
        await linked(node, tail, port)


async def test_another_leader_is_heard(start: Start, port: int) -> None:
    """4.3: the outbound side is broken off; what was unanswered returns first"""
    node = await start(times=QUIET)
    async with Tail() as tail:
        after = await linked(node, tail, port)
        before = await Wire.to(node.places["ring"])
        node.adopt(before.close)
        before.say(leader(node.name, 200))
        await before.hears(b"A")
        assert node.is_leader
        node.carrier.put(b"one")
        await drained(after, node)
        tell(find_beacon(GROUP, b"~:1"), port)
        assert await after.rest() == b""
        assert not node.is_leader
        assert list(node.carrier.waiting) == [b"one"]


async def drained(after: Wire, node: LiveNode) -> None:
    """Up to the USER, which is not answered."""
    while (await after.message())[:4] == b"LOOP":
        after.say(b"A")
