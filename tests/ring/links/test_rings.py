"""Rings of real nodes: closed, led, healed, merged (ring.md 3, 4)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from services.ring.node.member import WATCH_S
from tests.kit.authority import Authority
from tests.live import set_up, until
from tests.ring.links.conftest import NewServer, Start
from tests.ring.links.live import LiveNode, free_udp_port, is_ring
from tests.ring.links.peers import BREAK_LINK_FORCED, Wire
from tests.servers import PROGRAMS, Server
from tests.silent import on_silent_machine


async def test_three_nodes_on_one_machine_hear_each_other_and_close_a_ring(start: Start) -> None:
    """Check that three nodes form a ring by broadcast on one port, and USERs go around in order (3.5, 3.6, 4.2)."""
    nodes = [await start() for _ in range(3)]
    await until(lambda: is_ring(nodes))
    assert len({node.station.beacons.sender.port for node in nodes}) == 1
    for node in nodes:
        assert node.number("beacons_received_total", kind="open") > 0
    sent = [b"%d" % n for n in range(300)]
    nodes[0].carrier.put(*sent)
    await until(lambda: len(nodes[0].carrier.arrived) == len(sent))
    assert all(node.carrier.arrived == sent for node in nodes)
    await until(lambda: nodes[0].carrier.acknowledged == sent)
    assert nodes[1].number("messages_received_total", type="user") == len(sent)


async def test_a_node_alone_closes_a_ring_with_itself_and_opens_it_for_another(start: Start) -> None:
    """Check that a lone node closes a ring with itself and opens it for another by its FIND (3.6 c, 4.3)."""
    one = await start(times={"self_s": 0.5})
    await until(lambda: is_ring([one]))
    one.carrier.put(b"to myself")
    await until(lambda: one.carrier.arrived == [b"to myself"])
    other = await start(times={"self_s": 0.5})
    await until(lambda: is_ring([one, other]))


async def test_messages_survive_the_end_of_a_node(start: Start) -> None:
    """Check that messages are delivered to all remaining nodes at least once after a node ends (2.2, 4.5)."""
    nodes = [await start(window=16) for _ in range(4)]
    await until(lambda: is_ring(nodes))
    sent = [b"%d" % n for n in range(2000)]
    nodes[0].carrier.put(*sent)
    following = next(node for node in nodes if node.name == nodes[0].successor)
    await until(lambda: len(following.carrier.arrived) > 100)
    nodes.remove(following)
    await following.member.station.stop_taking()
    await following.close()
    await until(lambda: is_ring(nodes))
    await until(lambda: all(set(node.carrier.arrived) >= missing(sent, following) for node in nodes))
    await until(lambda: not nodes[0].carrier.waiting)
    assert set(nodes[0].carrier.acknowledged) == set(sent)


def missing(sent: list[bytes], gone: LiveNode) -> set[bytes]:
    """Return the messages that the stopped node had not accepted; it keeps none in memory."""
    return set(sent) - set(gone.carrier.arrived)


async def test_two_rings_merge(start: Start) -> None:
    """Check that two rings merge when one leader hears the FIND of the other (4.3)."""
    one = [await start() for _ in range(3)]
    await until(lambda: is_ring(one))
    other = [await start(group=8) for _ in range(2)]
    await until(lambda: is_ring(other))
    assert is_ring(one), "belongs to another group (3.3)"
    more = [await start(beacon_targets=[]) for _ in range(2)]
    await until(lambda: is_ring([*one, *more]))


async def test_partitioned_ring_closes_again(start: Start) -> None:
    """Check that a partitioned ring closes again once all nodes hear each other (4.3, 4.8)."""
    ports = [free_udp_port() for _ in range(2)]
    parts = [[await start(beacon_port=port) for _ in range(2)] for port in ports]
    for part in parts:
        await until(lambda: is_ring(part))  # noqa: B023
    for part, other in (parts, parts[::-1]):
        for node in part:
            hears(node, other[0].station.beacons.sender.port)
    await until(lambda: is_ring([*parts[0], *parts[1]]))


def hears(node: LiveNode, port: int) -> None:
    """Deliver its beacons to the nodes of the other partition, too."""
    node.station.beacons.sender.follow([f"127.255.255.255:{port}"])


async def test_stopped_store_makes_the_node_leave(start: Start, new_server: NewServer) -> None:
    """Check that a node with a stopped store leaves the ring and returns with its store (4.7).

    SIGSTOP; the node closes both links and sends no beacons meanwhile.
    """
    server = await new_server()
    nodes = [await start(), await start(), await start(url=server.url)]
    node = nodes[2]
    await until(lambda: is_ring(nodes))
    server.stop()
    await until(lambda: node.station.node.is_away)
    assert node.station.outbound is None
    await until(lambda: not node.connections("ring") and not node.diallers[0].connections)
    opened = node.number("beacons_sent_total", kind="open")
    await until(lambda: is_ring(nodes[:2]))
    assert node.number("beacons_sent_total", kind="open") == opened
    wire = await Wire.to(node.places["ring"])
    node.adopt(wire.close)
    assert await wire.rest() == b""
    assert node.member.status.document()["away"]
    server.cont()
    await until(lambda: is_ring(nodes))


async def test_short_store_outage_breaks_no_link(start: Start, new_server: NewServer) -> None:
    """Check that a short store outage breaks no link: links wait as requests do (4.7)."""
    server = await new_server()
    nodes = [await start(), await start(url=server.url)]
    await until(lambda: is_ring(nodes))
    breaks = [node.station.node.breaks for node in nodes]
    with server.client() as client:
        client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await until(lambda: nodes[1].log.events("store_away"))
    await until(lambda: nodes[1].is_ready())
    await asyncio.sleep(0.2)  # two polls of the store
    assert [node.station.node.breaks for node in nodes] == breaks
    assert is_ring(nodes)


async def test_stopping_node_closes_its_links_in_order(start: Start) -> None:
    """Check that a stopping node waits for answers before both neighbours get the FIN (2.2)."""
    nodes = [await start(window=8) for _ in range(3)]
    await until(lambda: is_ring(nodes))
    node = nodes[0]
    after = next(each for each in nodes if each.name == node.successor)
    after.carrier.is_held = True
    node.carrier.put(*(b"%d" % n for n in range(20)))
    await until(lambda: len(after.carrier.arrived) == 8)
    stopping = asyncio.ensure_future(node.member.station.stop_taking())
    await asyncio.sleep(0.1)
    assert not stopping.done()
    after.carrier.release()
    await stopping
    assert node.carrier.acknowledged == [b"%d" % n for n in range(8)]
    assert node.carrier.returned == []
    await until(lambda: not node.connections("ring") and not node.diallers[0].connections)
    assert [line for line in node.log.events("refused") if line.reason == "ack_timeout"] == []  # type: ignore[attr-defined]
    await until(lambda: is_ring([each for each in nodes if each is not node]))


async def test_stopping_node_does_not_rejoin(start: Start) -> None:
    """Check that a stopping node does not rejoin, though its store works and is polled until the process ends (4.7)."""
    node = await start()
    await node.member.station.stop_taking()
    assert node.station.node.is_away
    node.station.store_back()
    await asyncio.sleep(3 * WATCH_S)
    assert node.station.node.is_away


async def two_over_ipv6(folder: Path) -> None:
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    fields = {"listeners": {"ring": {"host": "::1", "port": 0}}, "advertise": "six.test"}
    port = free_udp_port()
    nodes = [LiveNode(server.url, port, **fields) for _ in range(2)]
    try:
        await set_up(server)
        await asyncio.gather(*(node.begin() for node in nodes))
        await until(lambda: is_ring(nodes))
        assert all(node.name.startswith(b"six.test:") for node in nodes)
        assert nodes[0].station.outbound is not None
        assert nodes[0].station.outbound.peer.address == "::1"
    finally:
        await asyncio.gather(*(node.close() for node in nodes))
        server.end()
    for node in nodes:
        node.check_no_fault_of_ours()


def test_links_over_ipv6(tmp_path: Path) -> None:
    """Check links over IPv6: node names can resolve to IPv6 addresses (1.2)."""
    on_silent_machine(lambda _: two_over_ipv6(tmp_path), tmp_path)


async def test_links_over_tls(start: Start, tmp_path: Path) -> None:
    """Check links over mutual TLS: a predecessor needs a certificate of the authority.

    The originals do not support TLS.
    """
    authority = Authority.create(tmp_path)
    fields = {
        "listeners": {"ring": {"port": 0, "tls": authority.mutual()}},
        "dial": {"tls": authority.dialler("node")},
        "window": 8,
    }
    nodes = [await start(**fields) for _ in range(3)]
    await until(lambda: is_ring(nodes))
    sent = [b"%d" % n for n in range(100)]
    nodes[0].carrier.put(*sent)
    await until(lambda: nodes[0].carrier.arrived == sent)
    other = await Wire.to(nodes[0].places["ring"])
    other.say(BREAK_LINK_FORCED)
    await other.ended()
    other.close()
    await until(lambda: nodes[0].refusals()["tls_handshake"] == 1)
    assert is_ring(nodes)
