"""Peers in the store that name nodes to each other while they run (ring.md 3.4; docs/operations.md, Rings)."""

from __future__ import annotations

from typing import Any

from services.ring.node.discovery.targets import MOST, Target, Targets
from services.store.model.peer import PeerSpec
from tests.live import until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode, free_udp_port, is_ring
from tests.ring.links.peers import Listening, open_beacon

SOON_S = 10.0  # long before a poll would read changes without a notification: LOOK_S of known_peers
LONELY: dict[str, Any] = {
    "broadcast": [],
    "times": {"self_s": 600.0, "open_s": 600.0, "open_first_for_s": 0.05, "vain_s": 1000.0},
}


async def apply(node: LiveNode, name: str, *addresses: str) -> None:
    spec = PeerSpec.model_validate({"protocol": "ring", "addresses": list(addresses)})
    await node.tools.peers.apply(name, spec, "operator")


async def forget(node: LiveNode, *names: str) -> None:
    for name in names:
        await node.tools.peers.delete(name)


def here(listening: Listening) -> str:
    return f"127.0.0.1:{listening.sock.getsockname()[1]}"


async def test_peer_resources_alone_make_a_ring(start: Start) -> None:
    """Check that peer resources alone make a ring.

    The list is the same for all, it includes each node's own address, and no node restarts.
    """
    ports = [free_udp_port() for _ in range(3)]
    nodes = [await start(beacon_port=port, broadcast=[], times={"self_s": 60.0}) for port in ports]
    assert not any(node.station.node.members for node in nodes)
    await apply(nodes[0], "ring-edge", *(f"127.0.0.1:{port}" for port in ports))
    await apply(nodes[0], "again", f"localhost:{ports[0]}", f"127.0.0.1:{ports[1]}")
    await until(lambda: is_ring(nodes))
    assert all(node.log.events("ring_same_name") == [] for node in nodes)
    await forget(nodes[0], "ring-edge", "again")


async def test_new_targets_get_an_open_at_once(start: Start) -> None:
    """Check that new targets get an OPEN at once: periodic beacons of an open tail are minutes apart here."""
    node = await start(**LONELY)
    await until(lambda: node.number("beacons_sent_total", kind="open") >= 1)
    with Listening(free_udp_port(), "127.0.0.1") as one, Listening(free_udp_port(), "127.0.0.1") as other:
        await apply(node, "one", here(one))
        opened = open_beacon(GROUP, node.name, node.name, node.name.rpartition(b":")[2])
        assert await one.beacon(b"OPEN") == opened
        await apply(node, "other", here(other), here(one))
        assert await other.beacon(b"OPEN") == opened
        assert one.waiting() == []  # earlier targets get no beacon for that
        await forget(node, "one", "other")
        await until(lambda: node.station.beacons.sender.targets.all == (), SOON_S)


async def test_removed_targets_get_no_beacons(start: Start) -> None:
    node = await start(broadcast=[], times={"self_s": 600.0})
    with Listening(free_udp_port(), "127.0.0.1") as gone, Listening(free_udp_port(), "127.0.0.1") as stays:
        await apply(node, "gone", here(gone))
        await apply(node, "stays", here(stays))
        await gone.beacon(b"OPEN")
        await forget(node, "gone")
        await until(lambda: len(node.station.beacons.sender.targets.all) == 1, SOON_S)
        gone.waiting()
        stays.waiting()
        for _ in range(3):
            await stays.beacon(b"OPEN")
        assert gone.waiting() == []
        await forget(node, "stays")


async def test_linked_node_sends_no_open_to_new_targets(start: Start) -> None:
    """Check that a linked node sends no OPEN to new targets.

    They hear of the ring by their own OPEN, or by the leader's FIND.
    """
    port = free_udp_port()
    node = await start(beacon_port=port, times={"self_s": 0.2}, broadcast=[])
    await apply(node, "itself", f"127.0.0.1:{port}")
    await until(lambda: is_ring([node]))
    with Listening(free_udp_port(), "127.0.0.1") as late:
        await apply(node, "late", here(late))
        await until(lambda: len(node.station.beacons.sender.targets.all) == 2, SOON_S)
        assert {each[:4] for each in late.waiting()} <= {b"FIND"}
        await late.beacon(b"FIND")
    await forget(node, "itself", "late")


async def test_configured_targets_stay(start: Start) -> None:
    with Listening(free_udp_port(), "127.0.0.1") as listener:
        node = await start(beacon_targets=[here(listener)], **LONELY)
        await listener.beacon(b"OPEN")
        await apply(node, "one", here(listener), "127.0.0.9")
        await until(lambda: len(node.station.beacons.sender.targets.all) == 2, SOON_S)
        await forget(node, "one")
        await until(lambda: len(node.station.beacons.sender.targets.all) == 1, SOON_S)
        assert str(node.station.beacons.sender.targets.all[0].port) == here(listener).partition(":")[2]


async def test_unresolvable_targets_are_logged_once(start: Start) -> None:
    node = await start(broadcast=[], times={"self_s": 600.0})
    with Listening(free_udp_port(), "127.0.0.1") as other:
        await apply(node, "lost", "no-such-host.invalid", here(other))
        await until(lambda: node.number("beacons_unsent_total") >= 5)
        lines = node.log.events("beacon_unsent", to="no-such-host.invalid")
        assert len(lines) == len({line.detail for line in lines}) <= 2  # type: ignore[attr-defined]
        other.waiting()
        await other.beacon(b"OPEN")  # and does not delay others
    await forget(node, "lost")


async def test_targets_are_limited_and_logged(start: Start) -> None:
    node = await start(broadcast=[], times={"self_s": 600.0})
    with Listening(free_udp_port(), "127.0.0.1") as first:
        await apply(node, "a", here(first))
        for peer in range(3):
            await apply(
                node,
                f"many-{peer}",
                *(f"127.1.{peer}.{host % 250 + 1}:{9 + host // 250}" for host in range(1000)),
            )
        await until(lambda: len(node.member.peers.peers) == 4, SOON_S)
        assert len(node.station.beacons.sender.targets.all) == MOST
        results = [line.count for line in node.log.events("beacon_targets_left_out")]  # type: ignore[attr-defined]
        assert sum(results) == 3001 - MOST
        first.waiting()
        await first.beacon(b"OPEN")
    await forget(node, "a", "many-0", "many-1", "many-2")


def test_loopback_node_is_not_announced_to_other_machines() -> None:
    """Check that a loopback address is announced to no other machine, as settings require (docs/operations.md)."""
    targets = Targets((), "127.0.0.1")
    assert targets.follow(["10.0.0.7", "127.0.0.2", "[fd00::7]:1", "node.example"]) == (
        Target("127.0.0.2", None),
        Target("node.example", None),
    )
    wide = Targets(("10.0.0.8:1",), "10.0.0.1")
    assert wide.follow(["10.0.0.7", "10.0.0.8:1"]) == (Target("10.0.0.7", None),)
    assert wide.all == (Target("10.0.0.8", 1), Target("10.0.0.7", None))
    assert wide.follow(["10.0.0.7"]) == ()
