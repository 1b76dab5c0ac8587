"""Peers with host names, which are resolved regularly and independently (rqp_mca.md 3.4)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_mca import AvailableConfirm
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.mca.peer import McaPeer as Peer
from tests.rqp.mca.peer import peer_settings, registered, take_one
from tests.servers import Server

AVAILABLE = AvailableConfirm(7)


class Dns:
    """A resolver with answers set by a test; `addresses` may change while it runs."""

    def __init__(self, **addresses: list[str]) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        if name not in self.addresses:
            raise OSError("no such name")
        return self.addresses[name]


async def test_each_address_of_a_name_is_a_receiving_mca(server: Server, start: Start) -> None:
    async with Peer("127.0.0.1") as one, Peer("127.0.0.2", one.port) as two:
        dns = Dns(**{"mca.example": ["127.0.0.1", "127.0.0.2"]})
        peers = {"them": {"addresses": [f"mca.example:{one.port}"]}}
        edge = await start(server, look_up=dns, mca={"peers": peers, "availability_timeout_s": 20.0})
        queue = await edge.remote("away")
        await edge.put(queue, b"one")
        call, other = await one.asked(), await two.asked()
        call.say(AVAILABLE)
        other.say(AVAILABLE)
        await until(lambda: call.waiting or other.waiting)


async def test_name_with_new_addresses_is_followed(server: Server, start: Start) -> None:
    """Check that a name is resolved again every `lookup_s` and new addresses are used."""
    async with Peer("127.0.0.1") as one, Peer("127.0.0.2", one.port) as two:
        dns = Dns(**{"mca.example": ["127.0.0.1"]})
        peers = {"it": {"addresses": [f"mca.example:{one.port}"]}}
        edge = await start(server, look_up=dns, mca={"peers": peers}, lookup_s=0.1)
        queue = await edge.remote("away")
        await edge.put(queue, b"one")
        call = await one.reserved()
        await take_one(call, b"one")
        dns.addresses["mca.example"] = ["127.0.0.2"]
        await call.ended()
        await edge.put(queue, b"two")
        await take_one(await two.reserved(), b"two")


async def test_failed_lookup_keeps_the_last_addresses(server: Server, start: Start, peer: Peer) -> None:
    """Check that a failed look-up keeps the last addresses."""
    dns = Dns(**{"mca.example": ["127.0.0.1"]})
    peers = {"it": {"addresses": [f"mca.example:{peer.port}"]}}
    edge = await start(server, look_up=dns, mca={"peers": peers}, lookup_s=0.1)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    await take_one(call, b"one")
    del dns.addresses["mca.example"]
    await until(lambda: edge.log.events("name_not_found", name_asked="mca.example"))
    await edge.put(queue, b"two")
    await take_one(call, b"two")


async def test_unknown_name_delays_no_other(server: Server, start: Start, peer: Peer) -> None:
    peers = {"lost": {"addresses": ["missing.example"]}, **peer_settings(peer)}
    edge = await start(server, look_up=Dns(), mca={"peers": peers})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await take_one(await peer.reserved(), b"one")
    assert len(edge.log.events("name_not_found")) == 1


class Hanging(Dns):
    """A resolver whose lookups hang until the test answers."""

    def __init__(self, **addresses: list[str]) -> None:
        super().__init__(**addresses)
        self.answers = asyncio.Event()
        self.hanging = 0

    async def __call__(self, name: str) -> list[str]:
        if "hangs" in name:
            self.hanging += 1
            await self.answers.wait()
        return await super().__call__(name)


async def test_hanging_name_server_delays_no_other_name(
    server: Server, start: Start, peer: Peer, other_peer: Peer
) -> None:
    """Check that a hanging name server delays neither addresses nor other names, and changes are followed."""
    dns = Hanging(**{"mca.example": ["127.0.0.1"]})
    peers = {
        "lost": {"addresses": ["hangs.example", f"127.0.0.1:{peer.port}"]},
        "found": {"addresses": [f"mca.example:{other_peer.port}"]},
    }
    edge = await start(server, look_up=dns, mca={"peers": peers, "availability_timeout_s": 20.0})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await peer.asked()
    await other_peer.asked()
    async with Peer() as newcomer:
        await edge.tools.peers.apply("lost-too", registered("also.hangs.example"), "cli")
        await edge.tools.peers.apply("newcomer", registered(newcomer.address), "cli")
        await newcomer.asked()


async def test_hanging_lookup_is_logged_and_not_repeated(
    server: Server, start: Start, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a hanging look-up is logged once per name and not repeated: threads are limited."""
    monkeypatch.setattr("services.rqp.name_resolver.SLOW_S", 0.05)
    dns = Hanging(**{"hangs.example": ["127.0.0.1"]})
    peers = {"late": {"addresses": [f"hangs.example:{peer.port}"]}}
    edge = await start(server, look_up=dns, mca={"peers": peers}, lookup_s=0.01)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    (line,) = await until(lambda: edge.log.events("name_not_found", name_asked="hangs.example"))
    assert "no answer within 0.05 s" in line.getMessage()
    await edge.tools.peers.apply("other", registered("127.0.0.3"), "cli")  # read again
    await until(lambda: edge.service.registered.peers)
    assert dns.hanging == 1
    dns.answers.set()
    await take_one(await peer.reserved(), b"one")
