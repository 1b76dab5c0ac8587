"""Messages of a predecessor, valid or invalid, octet by octet (ring.md 2, 3.5)."""

from __future__ import annotations

import contextlib
import os
import socket
import time

import pytest

from protos.ring import TailState
from services.kit.net import sockets
from services.kit.net.connection import Connection
from services.ring.node.timer import STALL_S
from tests.live import until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode
from tests.ring.links.peers import (
    BREAK_LINK_FORCED,
    Listening,
    Tail,
    Wire,
    leader,
    link_broken,
    loop,
    message,
    user,
)

LOWEST, HIGHEST = b"!:1", b"~:1"


@pytest.fixture
async def node(start: Start) -> LiveNode:
    return await start()


async def connect(node: LiveNode) -> Wire:
    wire = await Wire.to(node.places["ring"])
    node.adopt(wire.close)
    await until(lambda: node.connections("ring"))
    return wire


async def test_messages_are_answered_by_one_octet_each_in_order(node: LiveNode) -> None:
    """Check that messages are answered by one octet each in order (2.2).

    USERs are answered once they are safe, LOOPs once they are processed.
    """
    wire = await connect(node)
    node.carrier.is_held = True
    wire.say(leader(HIGHEST), user(b"one"), leader(HIGHEST), user(b"two"))
    await wire.hears(b"A")
    assert await wire.is_silent()
    assert node.leader == HIGHEST
    assert node.carrier.arrived == [b"one", b"two"]
    node.carrier.release()
    await wire.hears(b"AAA")


async def test_slow_store_pauses_reading(node: LiveNode) -> None:
    """Check that a slow store pauses reading: memory is bounded, and all messages are answered in the end (2.2)."""
    wire = await connect(node)
    node.carrier.is_held = True
    sent = [b"%05d" % n + bytes(16_000) for n in range(2000)]
    wire.say(*map(user, sent))
    await until(lambda: len(node.carrier.arrived) >= 64)
    assert await wire.is_silent()
    assert len(node.carrier.arrived) == 64
    assert node.budget.total < 1 << 20
    node.carrier.release()
    await wire.hears(b"A" * len(sent))
    assert node.carrier.arrived == sent


async def test_user_messages_of_every_length_are_accepted(node: LiveNode) -> None:
    """Check that USER messages of every length are accepted (2.1)."""
    wire = await connect(node)
    sizes = (0, 1, 16_383, 16_384)
    for size in sizes:
        for octet in user(bytes(size))[:10]:
            wire.say(bytes([octet]))
        wire.say(user(bytes(size))[10:])
        await wire.hears(b"A")
    assert node.carrier.arrived == [bytes(size) for size in sizes]


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "unknown_type"),
        (b"user\0\0", "unknown_type"),
        (b"USER\x40\x01", "too_long"),
        (b"LOOP\xff\xff", "too_long"),
    ],
)
async def test_invalid_message_closes_the_link(node: LiveNode, octets: bytes, reason: str) -> None:
    """Check that an invalid message closes the link as soon as it is read (2.5).

    Messages before it count, and the link is built again.
    """
    wire = await connect(node)
    wire.say(leader(HIGHEST), octets)
    assert await wire.rest() == b"A"
    assert node.refusals()[reason] == 1
    assert node.leader == HIGHEST
    await until(lambda: node.station.node.tail.state is TailState.OPEN)
    last = node.station.node.last_break
    assert last is not None
    assert (last.side, last.why) == ("inbound", reason)
    assert node.number("breaks_total", side="inbound", reason=reason) == 1
    again = await connect(node)
    again.say(user(b"x"))
    await again.hears(b"A")


async def test_unsafe_messages_are_not_acknowledged_when_the_link_breaks(node: LiveNode) -> None:
    """Check that unsafe messages get no `A` when the link breaks, so that the sender keeps them (2.5, 2.2)."""
    wire = await connect(node)
    node.carrier.is_held = True
    wire.say(user(b"one"), b"what?")
    assert await wire.rest() == b""
    node.carrier.release()
    again = await connect(node)
    again.say(user(b"one"))
    await again.hears(b"A")
    assert node.carrier.arrived == [b"one", b"one"]


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (message(b"LOOP", b"\0\1"), "loop_too_short"),
        (loop(9, 3), "unknown_subtype"),
        (loop(9, 0, b"\0"), "bad_name"),
        (loop(9, 0, b"\5abc"), "bad_name"),
        (loop(9, 2, b"x"), "loop_too_long"),
    ],
)
async def test_unusable_loops_are_answered_and_counted(
    node: LiveNode, port: int, octets: bytes, reason: str
) -> None:
    """Check that unusable LOOPs are answered and counted but never forwarded (2.3)."""
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        await answer_all(after, node)
        wire = await connect(node)
        wire.say(octets, leader(HIGHEST, 5))
        await wire.hears(b"AA")
        assert node.refusals()[reason] == 1
        seen = [await after.message()]
        while seen[-1] != leader(HIGHEST, 4):
            after.say(b"A")
            seen.append(await after.message())
        assert octets not in seen


async def answer_all(after: Wire, node: LiveNode) -> None:
    """Answer the name that a node sends to a new successor."""
    assert await after.message() == leader(node.name, 0)  # 2.6
    after.say(b"A")
    await until(lambda: node.successor)


async def test_loops_with_ttl_0_are_not_forwarded(node: LiveNode, port: int) -> None:
    """Check that LOOPs whose TTL is used up are answered but not forwarded (2.3)."""
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        await answer_all(after, node)
        wire = await connect(node)
        wire.say(leader(HIGHEST, 0))
        await wire.hears(b"A")
        assert node.leader == node.name
        wire.say(leader(b"~:2", 1), link_broken(b"~:3", 2), link_broken(b"~:4", 65025))
        await wire.hears(b"AAA")
        seen: list[bytes] = []
        while not seen or seen[-1] != link_broken(b"~:4", 254):
            seen.append(await after.message())
            after.say(b"A")
        assert link_broken(b"~:3", 1) in seen
        assert leader(b"~:2", 0) not in seen


async def test_break_link_forced_closes_the_inbound_link(node: LiveNode) -> None:
    """Check that a forced BreakLink is answered and closes the inbound link, and OPEN is sent again (2.3)."""
    wire = await connect(node)
    wire.say(user(b"x"))
    await wire.hears(b"A")
    wire.say(BREAK_LINK_FORCED, user(b"never read"))
    assert await wire.rest() == b"A"
    assert node.carrier.arrived == [b"x"]
    last = node.station.node.last_break
    assert last is not None
    assert (last.side, last.why) == ("inbound", "forced by the predecessor")
    assert node.station.node.tail.state is TailState.OPEN


async def test_a_health_probe_is_no_predecessor(node: LiveNode, port: int) -> None:
    """Check that a health probe does not count as a predecessor: OPENs go on, and no break is counted (3.5)."""
    with Listening(port) as listening:
        for _ in range(20):
            wire = await connect(node)
            wire.close()
        await until(lambda: not node.connections("ring"))
        listening.waiting()
        assert await listening.beacon(b"OPEN")
    assert node.station.node.breaks == 0
    assert sum(node.refusals().values()) == 0


async def test_a_newer_connection_takes_the_place_of_a_silent_one(node: LiveNode) -> None:
    """Check that a newer connection replaces a silent one (3.5)."""
    silent = await connect(node)
    speaks = await connect(node)
    assert await silent.rest() == b""
    speaks.say(user(b"x"))
    await speaks.hears(b"A")
    later = await connect(node)
    assert await later.rest() == b"", "there is a predecessor"
    speaks.say(user(b"y"))
    await speaks.hears(b"A")


async def test_silent_predecessor_counts_after_newcomer_s(start: Start) -> None:
    """Check that a silent connection counts as the predecessor after newcomer_s (3.5)."""
    node = await start(times={"newcomer_s": 0.2})
    await connect(node)
    await until(lambda: node.station.predecessor)


async def test_proxy_header_is_named_in_the_refusal(node: LiveNode) -> None:
    wire = await connect(node)
    wire.say(leader(b"127.0.0.1:1", 0))
    await until(lambda: node.station.predecessor)
    for header in (
        b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 8085\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12),
    ):
        later = await Wire.to(node.places["ring"])
        node.adopt(later.close)
        assert await later.rest() == b"", "there is a predecessor"
        later.say(header)
    await until(lambda: node.refusals()["proxy_header"] == 2)
    assert node.station.predecessor


async def test_predecessor_that_stops_sending_its_name_is_closed(start: Start) -> None:
    """Check that a predecessor that stops sending its name is closed (2.6: 30 s, here 0.6)."""
    node = await start(times={"silence_s": 0.6})
    wire = await connect(node)
    wire.say(leader(b"127.0.0.1:1", 0))
    await wire.hears(b"A")
    assert await wire.rest() == b""
    last = node.station.node.last_break
    assert last is not None
    assert last.why == "the predecessor is silent"


async def test_stalled_node_does_not_close_its_predecessor(start: Start) -> None:
    """Check that a stalled node reads waiting messages before it counts its predecessor as silent (2.6)."""
    node = await start(times={"silence_s": 0.5, "lost_s": 1000.0, "absent_s": 2000.0})
    with socket.create_connection(node.places["ring"]) as predecessor:
        predecessor.sendall(leader(b"127.0.0.1:1", 0))
        await until(lambda: node.station.node.tail.name)
        for _ in range(2):
            received = node.number("messages_received_total", type="loop")
            predecessor.sendall(leader(b"127.0.0.1:1", 0))
            time.sleep(0.5 + 1.5 * STALL_S)  # noqa: ASYNC251  the whole process is stalled
            node.station.tick()
            node.station.tick()
            await until(lambda: node.number("messages_received_total", type="loop") > received)  # noqa: B023
            assert node.station.predecessor
            assert node.station.node.last_break is None


async def test_originals_may_be_silent(start: Start) -> None:
    """Check that originals may be silent: they never send their name while idle (2.6)."""
    node = await start(times={"silence_s": 0.2, "idle_s": 0.1})
    wire = await connect(node)
    wire.say(leader(HIGHEST))
    await wire.hears(b"A")
    assert await wire.is_silent()
    assert node.station.predecessor


async def test_unfinished_message_times_out(start: Start) -> None:
    """Check that an incomplete message times out (2.7)."""
    node = await start(request_timeout_s=0.3)
    wire = await connect(node)
    wire.say(user(b"x" * 100)[:50])
    assert await wire.rest() == b""
    assert node.refusals()["request_timeout"] == 1


async def test_fin_inside_a_message_is_truncated(node: LiveNode) -> None:
    """Check that a FIN inside a message counts as truncated, and messages before it count (2.7)."""
    wire = await connect(node)
    wire.say(user(b"whole"), user(b"x" * 100)[:50])
    wire.finish()
    assert await wire.rest() == b"A"
    assert node.refusals()["truncated"] == 1
    assert node.carrier.arrived == [b"whole"]


async def test_messages_before_a_fin_are_answered_once_safe(node: LiveNode) -> None:
    """Check that messages before a FIN are answered once safe, within the timeout of an `A` (2.2, 4.5)."""
    wire = await connect(node)
    node.carrier.is_held = True
    wire.say(user(b"x"))
    wire.finish()
    await until(lambda: node.station.node.breaks == 1)
    assert await wire.is_silent()
    node.carrier.release()
    assert await wire.rest() == b"A"
    node.carrier.is_held = True
    never = await connect(node)
    never.say(user(b"y"))
    never.finish()
    assert await never.rest() == b""


async def test_reset_is_handled(node: LiveNode) -> None:
    """Check that after a reset the node sends OPEN again at once (4.4, 4.5)."""
    wire = await connect(node)
    wire.say(user(b"x"))
    await wire.hears(b"A")
    wire.reset()
    await until(lambda: node.station.node.breaks == 1)
    assert node.station.node.tail.state is TailState.OPEN


def socket_of(end: Connection) -> socket.socket:
    """Return a duplicate of this process's socket of the connection."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            sock = socket.socket(fileno=os.dup(number))
            with contextlib.suppress(OSError, IndexError):
                if (sock.getsockname(), sock.getpeername()[1]) == (end.local, end.peer.port):
                    return sock
            sock.close()
    raise AssertionError(f"{end.conn} has no socket")


async def test_tcp_keepalive_is_on_for_both_sides(node: LiveNode, port: int) -> None:
    """Check that both sides use TCP keep-alive: after 60 s idle, every 10 s, 8 times (2.6)."""
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        await answer_all(after, node)
        await connect(node)
        ends = [*node.connections("ring"), *node.diallers[0].connections]
        assert len(ends) == 2
        for end in ends:
            with socket_of(end) as sock:
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                # IDLE, INTVL, CNT of linux/tcp.h
                times = [sock.getsockopt(socket.IPPROTO_TCP, name) for name in (4, 5, 6)]
            assert times == [sockets.KEEPALIVE_IDLE_S, sockets.KEEPALIVE_INTERVAL_S, sockets.KEEPALIVE_PROBES]
            assert times == [60, 10, 8]
