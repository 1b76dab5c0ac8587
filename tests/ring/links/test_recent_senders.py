"""Nodes listed by one side only: the other answers to the address of their beacons (ring.md 3.4)."""

from __future__ import annotations

import socket
from typing import Any

from services.ring.node.discovery.recent_senders import MOST, RecentSenders
from services.ring.node.discovery.targets import Target
from tests.live import until
from tests.ring.links.conftest import Start
from tests.ring.links.live import GROUP, LiveNode, is_closed, is_ring
from tests.ring.links.peers import find_beacon, open_beacon

ONE, TWO, THREE, FOUR = (f"127.0.0.{number}" for number in (2, 3, 4, 5))
PROMPT = 5.0  # seconds


def at(host: str, *targets: str, **settings: Any) -> dict[str, Any]:
    """Return settings of a node with its own address and the shared port."""
    listener = {"ring": {"host": host, "port": 0}}
    return {
        "listeners": listener,
        "beacon_host": host,
        "broadcast": [],
        "beacon_targets": list(targets),
        **settings,
    }


async def test_one_sided_target_lists_make_a_ring(start: Start) -> None:
    one = await start(**at(ONE))
    other = await start(**at(TWO, ONE))
    await until(lambda: is_ring([one, other]))


async def test_one_sided_target_lists_merge_rings(start: Start) -> None:
    """Check that one-sided target lists merge rings.

    Otherwise each FIND would open one ring, which would never hear an OPEN of the ring to merge with.
    """
    here = [await start(**at(host, ONE, TWO)) for host in (ONE, TWO)]
    await until(lambda: is_ring(here))
    there = [await start(**at(host, ONE, TWO, THREE, FOUR)) for host in (THREE, FOUR)]
    await until(lambda: is_ring([*here, *there]))
    assert is_closed([*here, *there])


def beacons_at(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, port))
    sock.settimeout(PROMPT)
    return sock


def say(sock: socket.socket, node: LiveNode, beacon: bytes) -> None:
    sock.sendto(beacon, (ONE, node.station.beacons.sender.port))


def recent_senders(node: LiveNode) -> list[str]:
    return [target.host for target in node.station.beacons.sender.recent_senders.all(node.station.now())]


async def test_replies_go_only_to_allowed_networks(start: Start) -> None:
    node = await start(**at(ONE, allow=["127.0.0.2/31"], times={"self_s": 600.0}))
    port = node.station.beacons.sender.port
    with beacons_at(FOUR, port) as refused, beacons_at(TWO, port) as allowed:
        say(refused, node, find_beacon(GROUP, b"z"))
        say(allowed, node, find_beacon(GROUP + 1, b"z"))  # of another group
        say(allowed, node, b"nonsense")
        await until(lambda: node.number("beacons_refused_total", reason="beacon_unknown") == 1)
        assert recent_senders(node) == []
        say(allowed, node, open_beacon(GROUP, b"z", f"{THREE}:1".encode(), b"1"))
        await until(lambda: node.number("beacons_received_total", kind="open") == 1)
        assert recent_senders(node) == [TWO]  # the address it came from, not the one it names


async def test_listed_addresses_get_each_beacon_once(start: Start) -> None:
    node = await start(**at(ONE, TWO, "localhost", times={"self_s": 600.0}))
    await until(lambda: len(node.station.beacons.sender.found) == 1)
    assert node.station.beacons.sender.met(TWO) == ()
    assert node.station.beacons.sender.met("127.0.0.1") == ()  # the address that the name resolves to
    assert node.station.beacons.sender.met(THREE) == (Target(THREE, None),)
    assert node.station.beacons.sender.met(THREE) == ()


def test_addresses_reached_by_broadcast_get_no_unicast() -> None:
    everywhere = RecentSenders(["127.255.255.255", "10.0.0.255"], 10.0)
    assert not everywhere.heard("127.0.0.2", 0.0)
    assert not everywhere.heard("10.0.0.7", 0.0)
    local = RecentSenders(["127.255.255.255"], 10.0)
    assert not local.heard("127.0.0.2", 0.0)
    assert local.heard("10.0.0.7", 0.0)


def test_recent_senders_expire_and_are_limited() -> None:
    recent_senders = RecentSenders([], 10.0)
    assert recent_senders.heard("10.0.0.7", 0.0)
    assert not recent_senders.heard("10.0.0.7", 5.0)
    assert recent_senders.all(14.0) == (Target("10.0.0.7", None),)
    assert recent_senders.all(15.0) == ()
    for number in range(2 * MOST):
        recent_senders.heard(f"10.0.1.{number}", 20.0)
    assert len(recent_senders.all(20.0)) == MOST
    assert recent_senders.heard("10.0.0.8", 30.0)
    assert recent_senders.all(30.0) == (Target("10.0.0.8", None),)
