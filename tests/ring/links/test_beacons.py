"""Datagrams that a node sends and receives (ring.md 1.1, 3)."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections import Counter
from typing import Any

import pytest

from protos.ring import Find, Open
from services.kit.config.layers import SettingsError
from services.kit.dns.lookup import ResolvedAddress, resolve
from services.ring.node.discovery import beacon_handler as beacon_handler
from services.ring.node.discovery import beacon_sender as sender
from tests.live import until
from tests.ring.links.conftest import NewServer, Start
from tests.ring.links.live import GROUP, LiveNode, free_udp_port, is_ring
from tests.ring.links.peers import Listening, Tail, Wire, find_beacon, leader, open_beacon, send_beacon

OPEN = open_beacon(GROUP, b"~:1", b"~:1", b"1")
FIND = find_beacon(GROUP, b"~:1")


async def refused(node: LiveNode, reason: str, number: int = 1) -> None:
    await until(lambda: node.number("beacons_refused_total", reason=reason) == number)


NO_BEACONS = [
    (b"", "beacon_unknown"),
    (b"OPE", "beacon_unknown"),
    (b"HELO" + OPEN[4:], "beacon_unknown"),
    (OPEN[:8], "beacon_truncated"),
    (OPEN[:-1], "beacon_truncated"),
    (FIND[:-1], "beacon_truncated"),
    (OPEN + b"\0", "beacon_trailing"),
    (open_beacon(GROUP, b"x" * 200, b"y" * 200, b"8" * 200), "beacon_too_long"),
    (b"OPEN" + bytes(60_000), "beacon_too_long"),
    (open_beacon(0, b"a", b"a", b"1"), "group_zero"),
    (open_beacon(GROUP, b"", b"a", b"1"), "empty_name"),
    (open_beacon(GROUP, b"a", b":1", b"1"), "bad_node"),
    (open_beacon(GROUP, b"a", b"a", b"65536"), "bad_service"),
]


async def test_invalid_datagrams_are_refused_and_counted(start: Start, port: int) -> None:
    """Check that invalid datagrams are dropped, counted and logged (3.3)."""
    node = await start()
    counted: Counter[str] = Counter()
    for datagram, reason in NO_BEACONS:
        send_beacon(datagram, port)
        counted[reason] += 1
        await refused(node, reason, counted[reason])
    assert node.log.events("beacon_refused")


async def test_beacons_of_other_groups_are_ignored(start: Start, port: int) -> None:
    """Check that beacons of other groups are ignored (3.3)."""
    node, other = await start(times={"self_s": 60.0}), await start(group=8, times={"self_s": 60.0})
    async with Tail() as tail:
        tail.announce(9, port)
        for each in (node, other):
            await until(lambda: each.number("beacons_ignored_total", reason="other_group") >= 5)  # noqa: B023
            assert each.station.outbound is each.station.predecessor is None
        assert tail.is_unconnected


async def test_own_beacons_are_ignored(start: Start, port: int) -> None:
    """Check that a node ignores its own FIND, but may close a ring with itself by its own OPEN (4.3, 3.6 c)."""
    node = await start(times={"self_s": 0.3})
    await until(lambda: is_ring([node]))
    assert node.number("beacons_ignored_total", reason="own") > 0
    send_beacon(find_beacon(GROUP, node.name), port)
    own = node.number("beacons_ignored_total", reason="own")
    await until(lambda: node.number("beacons_ignored_total", reason="own") > own)
    assert node.is_leader
    assert node.number("leader") == node.number("successor") == node.number("predecessor") == 1


async def test_another_node_of_the_same_name(start: Start, port: int) -> None:
    """Check that another node of the same name is not taken for the node itself, and is reported once (1.2)."""
    node = await start(
        times={
            "self_s": 0.1,
            "open_s": 60.0,
            "open_first_for_s": 0.001,
            "open_first_s": 60.0,
            "vain_s": 150.0,
        }
    )
    async with Tail() as tail:
        tail.name = node.name
        for number in range(1, 4):
            tail.announce(GROUP, port)
            await until(lambda: node.number("beacons_ignored_total", reason="same_name") == number)  # noqa: B023
        assert tail.is_unconnected
    assert len(node.log.events("ring_same_name")) == 1


@pytest.mark.parametrize("kind", ["open", "find"])
async def test_another_node_of_the_same_name_and_port(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Check that a node with the same name and port on another machine is detected and reported once (1.2).

    A beacon that arrives long after this node sent such a one is not its own.
    """
    monkeypatch.setattr(beacon_handler, "ECHO_S", 0.3)
    node = await start(times={"self_s": 0.3, "find_s": 60.0, "confirm_s": 130.0})
    await until(lambda: is_ring([node]))
    service = b"%d" % node.places["ring"][1]
    beacons = {"open": open_beacon(GROUP, b"~:1", node.name, service), "find": find_beacon(GROUP, node.name)}
    own = node.number("beacons_ignored_total", reason="own")
    assert own > 0
    assert node.number("beacons_ignored_total", reason="same_name") == 0

    async def is_noticed() -> bool:
        send_beacon(beacons[kind], port)
        return node.number("beacons_ignored_total", reason="same_name") >= 2

    await until(is_noticed)
    [line] = node.log.events("ring_same_name")
    assert node.name.decode() in line.getMessage()
    assert is_ring([node])


async def test_own_beacons_are_never_taken_for_a_duplicate_name(
    start: Start, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that own beacons that arrive several times are not taken for a duplicate name (1.2)."""
    monkeypatch.setattr(beacon_handler, "ECHO_S", 0.3)
    node = await start(
        beacon_targets=[f"127.0.0.1:{port}", f"localhost:{port}"],
        times={"self_s": 1.0},
    )
    await until(lambda: is_ring([node]))
    await until(lambda: node.number("beacons_sent_total", kind="find") >= 3)
    own = node.number("beacons_ignored_total", reason="own")
    assert own > sum(node.number("beacons_sent_total", kind=kind) for kind in ("open", "find"))
    assert not node.log.events("ring_same_name")


async def test_own_beacons_read_after_a_stall_are_ignored(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that own beacons read after a stall are ignored, also while the node polls often (1.2)."""
    monkeypatch.setattr(beacon_handler, "ECHO_S", 0.3)
    node = await start(times={"self_s": 0.3, "find_s": 60.0, "confirm_s": 130.0})
    await until(lambda: is_ring([node]))
    for stands_still in (True, False):
        own = node.number("beacons_ignored_total", reason="own")
        node.station.beacons.sender.send(Find(GROUP, node.name))
        if stands_still:
            time.sleep(2 * beacon_handler.ECHO_S)  # noqa: ASYNC251  the whole process is stalled
        else:
            for _ in range(2 * beacon_handler.ECHO_TICKS):
                node.station.tick()
        await until(lambda: node.number("beacons_ignored_total", reason="own") > own)  # noqa: B023
    assert not node.log.events("ring_same_name")


async def test_beacons_of_another_process_count_while_the_store_is_away(
    start: Start, new_server: NewServer, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that beacons of another process in the node's name are no duplicates while the store is away (1.2, 4.7)."""
    monkeypatch.setattr(beacon_handler, "ECHO_S", 0.3)
    server = await new_server()
    node = await start(url=server.url, times={"self_s": 60.0})
    server.kill9()
    await until(lambda: node.station.node.is_away)
    name, service = node.name, b"%d" % node.places["ring"][1]
    echoes = node.station.beacon_handler.echoes
    await until(lambda: node.station.tick() or not echoes.may_have(Find(GROUP, name)))
    await until(lambda: node.station.tick() or not echoes.may_have(Open(GROUP, name, name, service)))
    own = node.number("beacons_ignored_total", reason="own")
    send_beacon(find_beacon(GROUP, name), port)
    send_beacon(open_beacon(GROUP, name, name, service), port)
    await until(lambda: node.number("beacons_ignored_total", reason="own") == own + 1)
    assert node.number("beacons_ignored_total", reason="same_name") == 0
    assert not node.log.events("ring_same_name")
    server.restart()


async def test_open_announces_the_node(start: Start, port: int) -> None:
    """Check that OPEN is sent at once, and repeatedly until a node connects (3.1)."""
    with Listening(port) as listening:
        node = await start()
        tcp = str(node.places["ring"][1]).encode()
        expected = open_beacon(GROUP, node.name, node.name, tcp)
        assert node.name == b"127.0.0.1:" + tcp
        for _ in range(3):
            assert await listening.beacon(b"OPEN") == expected


async def test_older_ports_are_used_per_beacon_kind(start: Start, port: int) -> None:
    """Check that ports of each beacon kind (8084 for OPEN, 8085 for FIND) work in both directions (1.1)."""
    older_open, older_find = free_udp_port(), free_udp_port()
    with Listening(older_open) as opens, Listening(older_find) as finds:
        node = await start(
            older_open_port=older_open, older_find_port=older_find, times={"self_s": 0.3, "find_s": 0.2}
        )
        assert await opens.beacon(b"OPEN")
        assert await finds.beacon(b"FIND") == find_beacon(GROUP, node.name)
        assert {each[:4] for each in opens.waiting()} <= {b"OPEN"}
        assert {each[:4] for each in finds.waiting()} <= {b"FIND"}
        async with Tail() as tail:
            send_beacon(find_beacon(GROUP, b"~:1"), older_find)
            await until(lambda: not node.is_leader)
            tail.announce(GROUP, older_open, b"~:1")
            assert await (await tail.predecessor()).message() == leader(node.name, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_nodes_listed_as_targets_find_each_other(start: Start, host: str) -> None:
    """Check that targets by address, host name or IPv6 address find each other without broadcasts (3.4)."""
    ports = [free_udp_port() for _ in range(3)]
    shown = f"[{host}]" if ":" in host else host
    fields: dict[str, Any] = {
        "broadcast": [],
        "beacon_host": host if ":" in host else "127.0.0.1",
        "beacon_targets": [f"{shown}:{port}" for port in ports],
    }
    nodes = [await start(beacon_port=port, **fields) for port in ports]
    await until(lambda: is_ring(nodes))


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_nodes_bound_to_all_addresses_find_each_other(start: Start, host: str) -> None:
    """Check that nodes bound to all addresses receive broadcasts and unicast beacons (1.1, 3.4)."""
    nodes = [await start(beacon_host=host, advertise="localhost") for _ in range(2)]
    await until(lambda: is_ring(nodes))
    count = nodes[1].number("beacons_refused_total", reason="beacon_unknown")
    send_beacon(b"nonsense", nodes[1].station.beacons.sender.port, "127.0.0.1")
    await refused(nodes[1], "beacon_unknown", int(count) + 1)


async def test_each_node_may_use_its_own_beacon_port(start: Start) -> None:
    """Check that port 0 in the settings gives each node its own beacon port, so that no other node finds it."""
    node = await start(beacon_port=free_udp_port(), broadcast=["127.255.255.255"])
    one = LiveNode(node.url, 0)
    try:
        await one.begin()
        assert one.station.beacons.sender.port not in (0, node.station.beacons.sender.port)
        send_beacon(b"nonsense", one.station.beacons.sender.port)
        await refused(one, "beacon_unknown")
    finally:
        await one.close()


async def test_beacons_from_other_networks_are_refused(start: Start, port: int) -> None:
    node = await start(allow=["127.0.0.0/8", "10.0.0.0/8"], beacon_host="::", advertise="localhost")
    send_beacon(b"nonsense", port, "127.0.0.1")
    await refused(node, "beacon_unknown")
    send_beacon(OPEN, port, "::1")
    await refused(node, "not_allowed")
    assert node.station.node.members == {}


async def test_beacon_floods_are_counted_and_logged_once(start: Start, port: int) -> None:
    """Check that beacon floods are counted and logged once, and other senders are served (3.3)."""
    node = await start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _ in range(3000):
            sock.sendto(b"flood", ("127.0.0.1", port))
    await until(lambda: node.number("beacons_refused_total", reason="beacon_unknown") > 100)
    assert len(node.log.events("beacon_refused")) == 1
    async with Tail() as tail:
        assert await tail.called_by_node(GROUP, port)


async def test_unsent_beacons_are_counted_and_logged_once(start: Start) -> None:
    """Check that unsent beacons are counted each time and logged once per address."""
    node = await start(
        advertise="localhost",
        broadcast=["127.255.255.255"],
        beacon_targets=["198.51.100.255", "no-such-host.invalid"],
        times={"self_s": 60.0},
    )
    await until(lambda: node.number("beacons_unsent_total") >= 6)
    lines = node.log.events("beacon_unsent")
    assert sorted({line.to for line in lines}) == ["198.51.100.255", "no-such-host.invalid"]  # type: ignore[attr-defined]
    assert len(lines) <= 3, [line.getMessage() for line in lines]
    assert node.number("beacons_sent_total", kind="open") >= 3


async def test_one_lookup_runs_per_target(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that one look-up runs per target (3.4).

    Beacons due during a look-up are not sent to that target; later ones are.
    """
    asked, may_end = 0, asyncio.Event()

    async def hang(*place: Any) -> list[ResolvedAddress]:
        nonlocal asked
        asked += 1
        await may_end.wait()
        return await resolve("127.0.0.1", place[1])

    monkeypatch.setattr(sender, "resolve", hang)
    with Listening(free_udp_port(), "127.0.0.1") as listening:
        target = f"slow.test:{listening.sock.getsockname()[1]}"
        node = await start(broadcast=[], beacon_targets=[target], times={"self_s": 60.0})
        await until(lambda: node.number("beacons_sent_total", kind="open") >= 5)
        assert asked == 1
        assert node.number("beacons_unsent_total") >= 4
        [line] = node.log.events("beacon_unsent", to="slow.test")
        assert "lookup of its name is still running" in line.getMessage()
        may_end.set()
        for _ in range(3):
            await listening.beacon(b"OPEN")
    assert asked >= 3


async def test_long_leader_name_prevents_the_beacon(start: Start, port: int) -> None:
    """Check that a leader name too long for a FIND is left out, and OPENs are still sent (1.2, 4.1)."""
    node = await start(name="127.0.0.1:" + "x" * 220)
    before = await Wire.to(node.places["ring"])
    node.adopt(before.close)
    before.say(leader(b"~" * 255, 9))
    await before.hears(b"A")
    before.close()
    sent = node.number("beacons_sent_total", kind="open")
    await until(lambda: node.number("beacons_sent_total", kind="open") > sent + 1)
    assert node.number("beacons_unsent_total") == 0


async def test_beacon_port_in_use_is_a_settings_error(start: Start) -> None:
    """Check that the error for a beacon port in use says what to do."""
    node = await start()
    for host in ("127.0.0.1", "127.255.255.255"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind((host, 0))
            taken = LiveNode(node.url, other.getsockname()[1])
            with pytest.raises(
                SettingsError, match=rf"{host} port .*: Address already in use; another program"
            ):
                await taken.begin()
            await taken.close()


async def test_foreign_beacon_host_is_a_settings_error(start: Start) -> None:
    node = await start()
    wrong = LiveNode(node.url, free_udp_port(), beacon_host="10.98.76.5", advertise="localhost")
    with pytest.raises(
        SettingsError, match=r"Cannot assign.*; set edges.ring.node.beacon_host to an address"
    ):
        await wrong.begin()
    await wrong.close()


async def test_absent_broadcast_address_is_bound_with_a_warning(start: Start) -> None:
    """Check that a missing broadcast address is logged and the node starts without it (3).

    An interface that is down has no broadcast address.
    """
    broadcast = ["127.255.255.255", "10.98.76.255"]
    nodes = [await start(broadcast=broadcast, advertise="localhost") for _ in range(2)]
    await until(lambda: is_ring(nodes))
    lines = nodes[0].log.events("broadcast_absent")
    assert lines
    assert all("the broadcast address 10.98.76.255:" in line.getMessage() for line in lines)


async def test_beacon_flood_does_not_starve_other_work(start: Start, port: int) -> None:
    """Check that floods of beacons do not starve links and clients, which share the event loop (3)."""
    node = await start(times={"self_s": 60.0})
    members = node.station.node.members
    for number in range(200):
        send_beacon(find_beacon(GROUP, b"a:%d" % number), port)
    heard = [len(members)]
    while heard[-1] < 200:
        await asyncio.sleep(0)
        heard.append(len(members))
    assert max(after - before for before, after in itertools.pairwise(heard)) <= 64
