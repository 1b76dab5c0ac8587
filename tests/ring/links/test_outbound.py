"""Messages that a node sends to its successor, and their outcome (ring.md 2.2, 2.6, 4.5)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest

from protos.ring import HeadState
from services.kit.dns.lookup import ResolvedAddress
from services.kit.net.dialler import Dialler
from services.ring.node.discovery import tcp_connect as tcp_connect
from tests.kit.calls import deaf
from tests.live import PATIENCE_S, until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode
from tests.ring.links.peers import Tail, Wire, find_beacon, leader, link_broken, send_beacon, user

NEVER = 1000.0
QUIET = {"idle_s": NEVER, "silence_s": 2 * NEVER}


@pytest.fixture
async def node(start: Start) -> LiveNode:
    """Start a node that sends its name only once, so that no other LOOPs come between the messages."""
    return await start(times=QUIET)


async def linked(node: LiveNode, tail: Tail, port: int) -> Wire:
    """Answer all that a node sends to a new successor."""
    after = await tail.called_by_node(GROUP, port)
    assert await after.message() == leader(node.name, 0), "2.6: sent first"
    after.say(b"A")
    await until(lambda: node.successor == tail.name)
    outbound = node.station.outbound
    assert outbound is not None
    while not outbound.is_answered:
        await after.message()
        after.say(b"A")
        await asyncio.sleep(0.01)
    return after


async def test_window_is_1_by_default(node: LiveNode, port: int) -> None:
    """Check that the window is 1 by default: an original reads the next message after its `A` (2.2)."""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        assert await after.is_silent()
        after.say(b"A")
        assert await after.message() == user(b"two")
        after.say(b"A")
        await until(lambda: node.carrier.acknowledged == [b"one", b"two"])


async def test_window_limits_unanswered_messages(start: Start, port: int) -> None:
    """Check that the window limits unanswered messages (2.2)."""
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


async def test_unanswered_messages_are_resent_in_order_on_the_next_link(start: Start, port: int) -> None:
    """Check that unanswered messages are sent again in order on the next link, at least once (2.2, 4.5)."""
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
    """Link the node while messages wait: its first `A` releases them, LOOPs first."""
    after = await tail.called_by_node(GROUP, port)
    assert await after.message() == leader(node.name, 0)
    after.say(b"A")
    return after


async def test_loops_precede_users(node: LiveNode, port: int) -> None:
    """Check that LOOPs are sent before USERs as soon as the window has room (2.2)."""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        before = await Wire.to(node.places["ring"])
        node.adopt(before.close)
        before.say(link_broken(b"other", 9))
        await before.hears(b"A")
        after.say(b"A")
        loops = [await after.message()]
        while loops[-1][:4] == b"LOOP":
            after.say(b"A")
            loops.append(await after.message())
        assert loops.pop() == user(b"two")
        assert link_broken(b"other", 8) in loops


async def test_unanswered_loops_are_resent_except_ttl_0(node: LiveNode, port: int) -> None:
    """Check that unanswered LOOPs are sent again, except Leader(me) with TTL 0: it was for one link (2.2, 2.6)."""
    async with Tail() as tail, Tail(suffix=b"2") as other:
        first = await tail.called_by_node(GROUP, port)
        assert await first.message() == leader(node.name, 0)
        first.say(b"A")
        assert await first.message() == link_broken(node.name, 255), "sent at its start (3.5)"
        first.close()
        await until(lambda: node.station.outbound is None)
        second = await other.called_by_node(GROUP, port)
        assert await second.message() == leader(node.name, 0)
        second.say(b"A")
        assert await second.message() == link_broken(node.name, 255)


async def test_missing_answer_breaks_the_link(start: Start, port: int) -> None:
    """Check that a missing answer breaks the link in time, and its messages return (4.5)."""
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


async def test_silent_successor_gets_no_user(start: Start, port: int) -> None:
    """Check that a successor without a first `A` is passed over for another one (3.6).

    It gets no USER, although the window has room.
    """
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
        assert mute.is_unconnected


@pytest.mark.parametrize(("answer", "reason"), [(b"AX", "not_an_ack"), (b"AA", "ack_for_nothing")])
async def test_invalid_answers_break_the_link(node: LiveNode, port: int, answer: bytes, reason: str) -> None:
    """Check that invalid answers break the link; messages acknowledged before count (2.5)."""
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one")
        assert await after.message() == user(b"one")
        after.say(answer)
        await after.ended()
        await until(lambda: node.station.outbound is None)
        assert node.carrier.acknowledged == [b"one"]
        assert node.refusals()[reason] == 1


async def test_excess_answer_does_not_count_for_the_next_message(node: LiveNode, port: int) -> None:
    """Check that an excess answer does not count for the next message (2.5).

    Waiting messages are sent only once all answers are counted, and so are kept.
    """
    async with Tail() as tail:
        after = await linked(node, tail, port)
        node.carrier.put(b"one", b"two")
        assert await after.message() == user(b"one")
        after.say(b"AA")
        assert await after.rest() == b""
        await until(lambda: node.station.outbound is None)
        assert node.carrier.acknowledged == [b"one"]
        assert list(node.carrier.waiting) == [b"two"]


async def test_stopping_node_sends_no_link_broken(node: LiveNode, port: int) -> None:
    """Check that a stopping node sends no LinkBroken, but waits for answers and sends a FIN (2.3).

    No node would take the LinkBroken off the ring.
    """
    async with Tail() as tail:
        after = await linked(node, tail, port)
        before = await Wire.to(node.places["ring"])
        node.adopt(before.close)
        before.say(user(b"one"))
        await before.hears(b"A")
        assert await after.message() == leader(node.name, 255), "4.2: a node has connected"
        after.say(b"A")
        assert await after.message() == user(b"one")
        stopping = asyncio.ensure_future(node.member.station.stop_taking())
        assert await before.rest() == b""
        after.say(b"A")
        await stopping
        assert await after.rest() == b""
        assert node.carrier.acknowledged == [b"one"]


async def test_idle_link_sends_leader_with_ttl_0(start: Start, port: int) -> None:
    """Check that an idle link sends Leader with TTL 0 after 10 s, here 0.1 (2.6)."""
    node = await start(times={"idle_s": 0.1})
    async with Tail() as tail:
        after = await linked_meanwhile(node, tail, port)
        seen = []
        while seen.count(leader(node.name, 0)) < 3:
            seen.append(await after.message())
            after.say(b"A")


async def test_unreachable_successor_is_ignored_for_a_while(node: LiveNode, port: int) -> None:
    """Check that an unreachable successor is ignored for a while, and other nodes are heard (3.6)."""
    async with Tail() as gone:
        pass
    gone.announce(GROUP, port)
    await until(lambda: node.number("dials_total", result="failed") == 1)
    assert node.station.node.head.state is HeadState.LISTENING
    async with Tail(suffix=b"2") as tail:
        await linked(node, tail, port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_host_of_a_name_is_before_the_colon(node: LiveNode, port: int, host: str) -> None:
    """Check that the host of a node name is the part before the colon: an address or a host name (1.2)."""
    async with Tail(host, b"4711:and:more") as tail:
        await linked(node, tail, port)


@pytest.mark.parametrize("node_name", [b"no-such-host.invalid:1", b"a" * 70 + b".invalid:1"])
async def test_unresolvable_successor_name_fails(node: LiveNode, port: int, node_name: bytes) -> None:
    """Check that an unresolvable successor name fails (1.2)."""
    async with Tail() as tail:
        tail.name = node_name
        tail.announce(GROUP, port)
        await until(lambda: node.number("dials_total", result="failed") == 1)
        assert tail.is_unconnected


async def test_addresses_outside_allow_are_not_dialled(start: Start, port: int) -> None:
    """Check that addresses outside `allow` are not dialled.

    Otherwise any sender of beacons could have a node connect to any host.
    """
    node = await start(allow=["127.0.0.1", "10.0.0.0/8"])
    async with Tail() as tail:
        tail.name = b"192.0.2.77:1"
        tail.announce(GROUP, port)
        await until(lambda: node.number("dials_total", result="not_allowed") == 1)
        tail.name = b"127.0.0.1:1"
        assert await tail.called_by_node(GROUP, port)


async def test_all_addresses_of_a_host_are_tried(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that all addresses of a host are tried within one connect timeout (2.6).

    A first address that does not respond does not use up the whole time.
    """

    async def several(*_: Any) -> list[ResolvedAddress]:
        """Resolve to several addresses: the machine need not have such a name."""
        places = [("127.0.0.1", silent), ("127.0.0.1", tail.port)]
        return [(int(socket.AF_INET), place) for place in places]

    monkeypatch.setattr(tcp_connect, "resolve", several)
    node = await start(dial={"connect_timeout_s": 1.0})
    async with Tail("several.test") as tail:
        with deaf() as silent:
            after = await tail.called_by_node(GROUP, port)
            assert await after.message() == leader(node.name, 0)
    assert node.number("dials_total", result="failed") == 0


async def test_late_connection_of_a_cancelled_attempt_is_closed(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a late connection of a cancelled attempt is closed and does not count (3.6, 4.7).

    The next attempt is independent.
    """
    node = await start(times={"self_s": 60.0})
    connect, is_asked, may = Dialler.connect, asyncio.Event(), asyncio.Event()

    async def slow(dialler: Dialler, *asked: Any) -> None:
        """Dial when released, even if the connection is no longer needed."""
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


async def test_find_of_another_leader_opens_the_ring(start: Start, port: int) -> None:
    """Check that the FIND of another leader opens the ring: the outbound link is broken (4.3).

    Unanswered messages return first.
    """
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
        send_beacon(find_beacon(GROUP, b"~:1"), port)
        assert await after.rest() == b""
        assert not node.is_leader
        assert list(node.carrier.waiting) == [b"one"]


async def drained(after: Wire, node: LiveNode) -> None:
    """Read up to the USER, which is not answered."""
    while (await after.message())[:4] == b"LOOP":
        after.say(b"A")
