"""Neighbours named by Peers while an edge runs (pubsub.md 4.1; docs/operations.md, "Links between stores")."""

from __future__ import annotations

import asyncio

import pytest

from services.pubsub.edge import RunningPubsub
from services.pubsub.links.neighbours import MOST, place_of
from services.store.model.peer import PeerSpec
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import NewServer, hold_the_same, linked, send_all, store, unlinked
from tests.servers import Server, free_port


async def apply(edge: LiveEdge, name: str, *addresses: str) -> None:
    spec = PeerSpec.model_validate({"protocol": "text", "addresses": list(addresses)})
    await edge.tools.peers.apply(name, spec, "operator")


async def test_added_peer_is_linked_and_removed_peer_is_unlinked(new_server: NewServer, start: Start) -> None:
    """Check that an added peer is linked and a removed one is unlinked without affecting other links."""
    one, two = await start(await store(new_server)), await start(await store(new_server))
    edge = await start(await store(new_server))
    await apply(edge, "one", one.link_address)
    await linked(edge)
    (connection,) = one.connections("link")
    await apply(edge, "two", two.link_address, one.link_address)
    await linked(edge, 2)
    await edge.tools.peers.delete("two")
    await unlinked(two)
    await until(lambda: two.connections("link") == [])
    await linked(edge, 1)
    assert one.connections("link") == [connection]
    await send_all(await two.client(), b"t", [b"from two"])
    await send_all(await one.client(), b"t", [b"from one"])
    await hold_the_same(edge, one, number=1)
    await apply(edge, "two", two.link_address)
    await linked(edge, 2)
    await hold_the_same(edge, one, two, number=2)  # messages sent meanwhile are caught up
    assert one.connections("link") == [connection]


async def test_lease_of_a_removed_neighbour_is_released_at_once(new_server: NewServer, start: Start) -> None:
    """Check that the lease of a removed neighbour is released at once, long before it expires (4.3)."""
    one, server = await start(await store(new_server)), await store(new_server)
    lasting = {"link": {"beat_s": 0.1, "silence_s": 2.0, "reconnect_s": 0.2, "lease_s": 600.0}}
    edge = await start(server, **lasting)
    await apply(edge, "one", one.link_address)
    await linked(edge)
    await edge.tools.peers.delete("one")
    await unlinked(edge)
    after = await start(server, neighbours=[one.link_address], **lasting)
    await linked(after)


async def test_neighbour_in_the_settings_stays(new_server: NewServer, start: Start) -> None:
    """Check that a neighbour in the settings stays if a Peer with its address is removed."""
    one = await start(await store(new_server))
    edge = await start(await store(new_server), neighbours=[one.link_address])
    await linked(edge)
    (connection,) = one.connections("link")
    two = await start(await store(new_server))
    await apply(edge, "both", one.link_address, two.link_address)
    await linked(edge, 2)
    await edge.tools.peers.delete("both")
    await linked(edge, 1)
    assert one.connections("link") == [connection]


async def test_peers_that_cannot_be_linked_are_logged_once(new_server: NewServer, start: Start) -> None:
    """Check that peers that cannot be linked are logged once, however often they are dialled."""
    dialled = 0

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialled
        dialled += 1
        writer.close()

    one, edge = await start(await store(new_server)), await start(await store(new_server))
    rude = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with rude:
        addresses = [f"127.0.0.1:{rude.sockets[0].getsockname()[1]}", f"127.0.0.1:{free_port()}"]
        addresses.append("no-such-host.invalid:7172")
        await apply(edge, "lost", *addresses, one.link_address)
        await linked(edge)
        await until(lambda: dialled >= 5)
        await until(lambda: len(edge.log.events("link_down")) >= 3)
        down = [line.neighbour for line in edge.log.events("link_down")]  # type: ignore[attr-defined]
        assert sorted(down) == sorted(addresses)
        assert edge.value("penstock_links_down") == len(addresses)
        await edge.tools.peers.delete("lost")
        await unlinked(edge)
        assert not edge.value("penstock_links_down")


async def test_peer_on_the_same_store_is_logged_and_not_linked(new_server: NewServer, start: Start) -> None:
    """Check that a peer on the same store is logged and not linked: operators may list all servers."""
    server = await store(new_server)
    edge, twin = await start(server), await start(server)
    await apply(edge, "all", edge.link_address, twin.link_address)
    await until(lambda: edge.log.events("link_to_itself"))
    await until(lambda: not edge.connections("link") and not twin.connections("link"))
    assert not edge.value("penstock_links_following")
    await until(lambda: not edge.value("penstock_links_down"))


async def test_number_of_peers_is_limited_and_logged(server: Server, start: Start) -> None:
    edge = await start(server, neighbours=["127.0.0.1:9"])
    assert isinstance(edge.running, RunningPubsub)
    kept = edge.running.neighbours
    addresses = [f"127.1.{number // 250}.{number % 250 + 1}:9" for number in range(MOST + 5)]
    kept.follow(addresses)
    assert edge.value("penstock_links_down") == MOST + 1
    kept.follow(addresses)
    (line,) = edge.log.events("neighbours_left_out")
    assert line.count == 5  # type: ignore[attr-defined]
    kept.follow(())
    assert edge.value("penstock_links_down") == 1


@pytest.mark.parametrize(
    ("address", "place", "shown"),
    [
        ("text.example.org", ("text.example.org", 7172), "text.example.org:7172"),
        ("10.0.0.7:7000", ("10.0.0.7", 7000), "10.0.0.7:7000"),
        ("[fd00::7]", ("fd00::7", 7172), "[fd00::7]:7172"),
    ],
)
def test_default_port_is_the_link_port(address: str, place: tuple[str, int], shown: str) -> None:
    """Check that the default port is the link port (4.3)."""
    assert (place_of(address), str(place_of(address))) == (place, shown)
