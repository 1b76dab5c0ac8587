"""Status of a node in the store and as a page (docs/store.md, ring.md 4)."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Any

from protos.ring.node import MAX_MEMBERS
from services.ring.node import status as board
from services.store.catalogue.ring_nodes import RingNode
from tests.live import until
from tests.ring.links.conftest import NewServer, Start
from tests.ring.links.live import GROUP, LiveNode, is_ring, settle
from tests.ring.links.peers import Tail, Wire, find_beacon, leader, open_beacon, send_beacon
from tests.ring.links.test_inbound import HIGHEST

NO_VACANCY = {"vacant_s": 60.0, "lost_s": 150.0, "absent_s": 200.0}
LONG = {"vain_s": 150.0, "alone_s": 150.0, "confirm_s": 130.0}


async def entries(node: LiveNode) -> dict[str, RingNode]:
    return {each.name: each for each in await node.tools.ring_nodes.all()}


async def entry(node: LiveNode, **expected: Any) -> RingNode:
    """Wait until the status entry meets the condition, and return it."""

    async def found() -> RingNode | None:
        one = (await entries(node)).get(node.name.decode())
        results = {} if one is None else one.document
        return (
            one if all(results.get(name) == value for name, value in expected.items()) and results else None
        )

    one: RingNode = await until(found)
    return one


async def test_nodes_publish_their_status(start: Start) -> None:
    nodes = [await start() for _ in range(3)]
    await until(lambda: is_ring(nodes))
    names = {node.name.decode() for node in nodes}

    async def current_entry(node: LiveNode) -> RingNode | None:
        """Wait until the status shows the present state."""
        one = (await entries(node)).get(node.name.decode())
        if one is None or not is_ring(nodes):
            return None
        document, successor = one.document, node.successor
        assert successor is not None
        as_it_is = (
            document["leader"] == node.leader.decode()
            and document["is_leader"] == node.is_leader
            and (document["successor"] or {}).get("name") == successor.decode()
            and (document["predecessor"] or {}).get("name") in names
            and board.without_ages(document) == board.without_ages(node.pages["/ring"]())
        )
        return one if as_it_is else None

    for node in nodes:
        one = await until(partial(current_entry, node))
        document = one.document
        assert one.group == document["group"] == GROUP
        assert document["predecessor"]["since_s"] >= 0
        assert {member["name"] for member in document["members"]} <= names
        assert document["pid"] == os.getpid()
        assert document["address"] == document["name"]
        assert document["is_led"]
        assert document["away"] is None


async def test_open_ring_is_shown_without_a_leader(start: Start) -> None:
    """Check that an open ring is shown without a leader.

    Nodes know the last one and that it stepped down (4.1, 4.4).
    """
    nodes = [await start(times={"self_s": 60.0, "own_ring_s": 1.0}) for _ in range(2)]
    await until(lambda: is_ring(nodes))
    last, left = sorted(nodes, key=lambda node: node.name)[::-1]
    await entry(left, leader=last.name.decode(), is_led=True)
    await last.member.station.stop_taking()
    await last.member.close()
    document = (await entry(left, is_led=False)).document
    assert document["leader"] == last.name.decode()
    assert document["is_leader"] is False


async def test_unheard_leader_does_not_count(start: Start, port: int) -> None:
    """Check that an unheard leader counts for 130 s, here 2.5; other nodes' proposals do not prolong it (4.6)."""
    node = await start(times={"self_s": 60.0, "no_leader_s": 60.0, **NO_VACANCY})
    before = await Wire.to(node.places["ring"])
    node.adopt(before.close)
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        answering = asyncio.ensure_future(keep_answering(after))
        before.say(leader(HIGHEST, 200))
        await before.hears(b"A")
        await entry(node, leader=HIGHEST.decode(), is_led=True)
        assert node.number("led") == 1
        before.say(leader(HIGHEST, 60))
        await before.hears(b"A")
        document = (await entry(node, leader=HIGHEST.decode(), is_led=False)).document
        assert node.number("led") == 0
        assert document["predecessor"]
        assert document["successor"]
        answering.cancel()


async def test_many_names_do_not_evict_the_leader(start: Start, port: int) -> None:
    """Check that many names do not evict the leader: it is kept outside the list of 1000 (4.6)."""
    node = await start(times={"self_s": 60.0, "own_ring_s": 60.0, "no_leader_s": 60.0, **NO_VACANCY, **LONG})
    before = await Wire.to(node.places["ring"])
    node.adopt(before.close)
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        answering = asyncio.ensure_future(keep_answering(after))
        before.say(leader(HIGHEST, 200))
        await before.hears(b"A")
        await until(lambda: HIGHEST in node.station.node.members)
        for number in range(MAX_MEMBERS + 100):
            send_beacon(open_beacon(GROUP, b"x", b"127.0.0.1:x%d" % number, b"1"), port)
            if number % 20 == 0:
                await settle()
        await until(lambda: HIGHEST not in node.station.node.members)
        assert node.pages["/ring"]()["is_led"]
        answering.cancel()


async def keep_answering(after: Wire) -> None:
    while True:
        await after.message()
        after.say(b"A")


async def test_members_expire(start: Start, port: int, monkeypatch: Any) -> None:
    """Check that members expire after 650 s, as in the metric (docs/operations.md)."""
    node = await start(times={"self_s": 60.0})
    for number in range(120):
        send_beacon(find_beacon(GROUP, b"a:%d" % number), port)
    document = (await entry(node, member_count=120)).document
    assert len(document["members"]) == 100
    monkeypatch.setattr(board, "MEMBER_S", 0.0)
    document = (await entry(node, member_count=0)).document
    assert document["members"] == []
    assert len(node.station.node.members) == 120


async def test_status_shows_the_last_break(start: Start, port: int) -> None:
    """Check that the status shows the last break at once, before the next periodic write (4.5)."""
    node = await start(times={"self_s": 60.0})
    async with Tail() as tail:
        after = await tail.called_by_node(GROUP, port)
        assert await after.message() == leader(node.name, 0)
        after.say(b"A")
        one = await entry(node)
        assert (await entry(node, breaks=0)).document["last_break"] is None
        await until(lambda: node.successor)
        after.close()
        one = await entry(node, breaks=1)
        last = one.document["last_break"]
        assert (last["side"], last["why"]) == ("outbound", "the successor closed it")
        assert last["ago_s"] < 20
        assert node.number("breaks_total", side="outbound", reason="closed") == 1
        assert one.document["successor"] is None


async def test_predecessor_name_is_unknown_for_originals(start: Start) -> None:
    """Check that an original predecessor is shown by its address, since its name is unknown (1.2)."""
    node = await start(times={"self_s": 60.0})
    wire = await Wire.to(node.places["ring"])
    node.adopt(wire.close)
    wire.say(leader(b"~:1"))
    await wire.hears(b"A")
    document = (await entry(node, leader="~:1")).document
    assert document["predecessor"]["name"] is None
    assert document["predecessor"]["address"].startswith("127.0.0.1:")
    assert [member["name"] for member in document["members"]] == ["~:1"]


async def test_status_shows_the_advertised_address(start: Start) -> None:
    """Check that the status shows the advertised address: the part of the name before its first `:` (1.2)."""
    node = await start(name="localhost:first", times={"self_s": 60.0})
    port = node.places["ring"][1]
    assert (await entry(node)).document["address"] == f"localhost:{port}"


async def test_status_shows_names_that_are_invalid_utf8(start: Start) -> None:
    """Check that the status shows names that are invalid UTF-8: names are octets (1.2)."""
    node = await start(times={"self_s": 60.0})
    wire = await Wire.to(node.places["ring"])
    node.adopt(wire.close)
    wire.say(leader(b"\xff\xfe"))
    await wire.hears(b"A")
    assert (await entry(node, leader="\udcff\udcfe")).document["leader"] == "\udcff\udcfe"


async def test_status_is_written_periodically(start: Start, monkeypatch: Any) -> None:
    """Check that the status is written periodically: readers take a node as silent after 30 s without a write."""
    monkeypatch.setattr(board, "WRITE_S", 0.2)
    node = await start(times={"self_s": 60.0})
    first = (await entry(node)).written_ms
    await until(lambda: written_after(node, first))


async def written_after(node: LiveNode, ms: int) -> bool:
    return (await entries(node))[node.name.decode()].written_ms > ms


async def test_status_is_removed_at_the_end(start: Start) -> None:
    node, other = await start(), await start()
    await entry(node)
    await entry(other)
    await node.member.station.stop_taking()
    await node.member.close()
    assert set(await entries(other)) == {other.name.decode()}


async def test_unavailable_store_does_not_delay_the_shutdown(start: Start, new_server: NewServer) -> None:
    """Check that an unavailable store does not delay the shutdown (4.7)."""
    server = await new_server()
    node = await start(url=server.url)
    await entry(node)
    server.stop()
    await until(lambda: node.station.node.is_away)
    assert node.pages["/ring"]()["away"]
    server.cont()
    await until(lambda: not node.station.node.is_away)
    await entry(node, away=None)
    server.stop()
    async with asyncio.timeout(10):
        await node.member.close()
    server.cont()
