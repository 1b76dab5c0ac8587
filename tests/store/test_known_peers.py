"""Following peer documents as edges do (docs/cli.md, peer)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.store.known_peers import KnownPeers
from services.store.model.peer import PeerProtocol, PeerSpec
from tests.store.desk import Desk, until


def spec(protocol: str, *addresses: str) -> PeerSpec:
    return PeerSpec.model_validate({"protocol": protocol, "addresses": list(addresses)})


class Followed:
    def __init__(self, desk: Desk) -> None:
        self.faults = 0
        self.changes = 0
        self.known = KnownPeers(desk.store, self._failed)
        self.known.on_change.append(self._changed)

    def _failed(self) -> None:
        self.faults += 1

    def _changed(self) -> None:
        self.changes += 1


@asynccontextmanager
async def following(desk: Desk) -> AsyncIterator[Followed]:
    """Follow the peers as an edge does."""
    async with desk.another() as edge:
        edge.store.start_serving()
        followed = Followed(edge)
        followed.known.start()
        yield followed
        await followed.known.close()


async def test_known_peers_follow_additions_changes_and_removals(desk: Desk) -> None:
    peers = desk.store.peers
    await peers.apply("west", spec("ring", "10.0.0.7"), "test")
    async with following(desk) as followed:
        known = followed.known
        await until(lambda: known.addresses(PeerProtocol.RING) == ["10.0.0.7"])
        await peers.apply("east", spec("ring", "10.0.0.9", "10.0.0.7"), "test")
        await peers.apply("text", spec("text", "10.0.0.8:7172"), "test")
        await until(lambda: known.addresses(PeerProtocol.TEXT) == ["10.0.0.8:7172"])
        assert known.addresses(PeerProtocol.RING) == ["10.0.0.9", "10.0.0.7"]  # by name, each once
        before = followed.changes
        await peers.apply("west", spec("ring", "10.0.0.7"), "operator")  # another owner: nothing to do
        await peers.delete("text")
        await until(lambda: known.addresses(PeerProtocol.TEXT) == [])
        assert followed.changes == before + 1
        assert followed.faults == 0


async def test_unreadable_peer_is_logged_once_and_ignored(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    keys = desk.store.registry.keys
    await desk.domain.link.call("HSET", keys.peers, "broken", "{")
    with caplog.at_level(logging.WARNING):
        async with following(desk) as followed:
            for address in ("10.0.0.7", "10.0.0.8"):
                await desk.store.peers.apply("west", spec("ring", address), "test")
                await until(lambda address=address: followed.known.addresses(PeerProtocol.RING) == [address])
    assert [line.peer_name for line in caplog.records if "is ignored" in line.getMessage()] == ["broken"]


async def test_failing_callback_does_not_stop_following(desk: Desk) -> None:
    async with following(desk) as followed:

        def stumble() -> None:
            followed.known.on_change.remove(stumble)
            raise RuntimeError("a fault of ours")

        followed.known.on_change.append(stumble)
        await desk.store.peers.apply("west", spec("ring", "10.0.0.7"), "test")
        await until(lambda: followed.faults == 1)
        await desk.store.peers.apply("west", spec("ring", "10.0.0.8"), "test")
        await until(lambda: followed.known.addresses(PeerProtocol.RING) == ["10.0.0.8"])


async def test_only_invalid_addresses_of_older_versions_are_ignored(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    keys = desk.store.registry.keys
    documents = {
        "shop": '{"protocol":"text","addresses":["10.0.0.1","255.255.255.255"]}',
        "self": '{"protocol":"text","addresses":["0.0.0.0:7172"]}',
    }
    for name, document in documents.items():
        await desk.domain.link.call("HSET", keys.peers, name, document)
    with caplog.at_level(logging.WARNING):
        async with following(desk) as followed:
            await until(lambda: followed.known.addresses(PeerProtocol.TEXT) == ["10.0.0.1"])
            await desk.store.peers.apply("west", spec("text", "10.0.0.8"), "test")
            await until(lambda: followed.known.addresses(PeerProtocol.TEXT) == ["10.0.0.1", "10.0.0.8"])
            assert "self" not in followed.known.peers
    results = [line.address for line in caplog.records if "is ignored" in line.getMessage()]
    assert results == ["0.0.0.0:7172", "255.255.255.255"]
    found = await desk.store.peers.find("shop")
    assert found is not None
    # shown as stored, until it is applied anew
    assert found.spec.addresses == ("10.0.0.1", "255.255.255.255")
