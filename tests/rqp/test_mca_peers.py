"""Where the list of receiving MCAs comes from, and how it changes while messages wait (rqp_mca.md 3.4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protos.rqp_mca import AvailableConfirm, Profile, QueueConfirm, QueueRequest
from services.rqp.mca.settings import McaPeer, parse_address
from services.store.keys import RegistryKeys
from services.store.peer import PeerSpec
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca_peer import McaPeer as Peer
from tests.rqp.mca_peer import registered, take_one
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


def write(file: Path, text: str) -> None:
    """As an editor does: whoever reads sees the old or the new, never half."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


# the file


async def test_peers_from_a_file_that_changes(
    server: Server, start: Start, peer: Peer, other_peer: Peer, tmp_path: Path
) -> None:
    """One receiving MCA on each line; who comes is asked too, and ends a pause; who goes is forgotten."""
    file = tmp_path / ".rqprc"
    file.write_text("# nobody yet\n")
    edge = await start(
        server,
        mca={"rqprc": str(file), "availability_timeout_s": 0.05, "first_pause_s": 60.0, "max_pause_s": 60.0},
    )
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.has_condition(queue, "no_receiver: no peer is known"))
    write(file, f"{peer.address}  # it has come\n")
    call = await peer.asked()  # the pause would last a minute
    call.say(AVAILABLE)
    await call.next(QueueRequest)
    call.say(YOURS)
    await take_one(call, b"one")
    write(file, f"{other_peer.address}\n")
    await call.ended()
    await edge.put(queue, b"two")
    other = await other_peer.reserved()
    await take_one(other, b"two")
    await until(lambda: edge.is_empty(queue))


async def test_bad_lines_stop_none_of_the_good_ones(
    server: Server, start: Start, peer: Peer, tmp_path: Path
) -> None:
    file = tmp_path / ".rqprc"
    file.write_text(f"two words\n{peer.address}\n1.2.3.4.5\n")
    edge = await start(server, mca={"rqprc": str(file)})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await take_one(await peer.reserved(), b"one")
    assert [line.line for line in edge.log.events("rqprc_line_skipped")] == [1, 3]


async def test_a_file_that_is_not_there_yet(server: Server, start: Start, peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / ".rqprc"
    edge = await start(server, mca={"rqprc": str(file)})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.log.events("rqprc_unread"))
    write(file, f"{peer.address}\n")
    await take_one(await peer.reserved(), b"one")
    assert len(edge.log.events("rqprc_unread")) == 1


async def test_two_lines_of_one_host_are_two_receiving_mcas(
    server: Server, start: Start, peer: Peer, other_peer: Peer, tmp_path: Path
) -> None:
    file = tmp_path / ".rqprc"
    file.write_text(f"{peer.address}\n{other_peer.address}\n")
    edge = await start(server, mca={"rqprc": str(file)})
    queue = await edge.remote("away", peers=[peer.host])
    await edge.put(queue, b"one")
    await other_peer.asked()
    await peer.asked()


# the store


async def test_peers_in_the_store(server: Server, start: Start, peer: Peer, other_peer: Peer) -> None:
    """Applied and deleted while the edge runs; their profile and window are theirs."""
    edge = await start(server)
    queue = await edge.remote("away", peers=["berlin"])
    await edge.put(queue, b"one", b"two")
    await edge.tools.peers.apply("paris", registered(other_peer.address))
    await edge.tools.peers.apply("berlin", registered(peer.address, profile="word", window=2))
    call = await peer.reserved()
    assert call.parser.profile is Profile.WORD
    assert await call.bodies(2) == [b"one", b"two"]
    call.confirm(2)
    await until(lambda: edge.is_empty(queue))
    await edge.tools.peers.delete("berlin")
    await call.ended()
    assert other_peer.calls == []
    await edge.put(queue, b"three")
    await edge.tools.peers.apply("berlin", registered(other_peer.address))
    await take_one(await other_peer.reserved(), b"three")
    await until(lambda: edge.is_empty(queue))


async def test_a_document_that_cannot_be_read_hides_no_other(
    server: Server, start: Start, peer: Peer
) -> None:
    """It is told once; who wrote it may be of a newer version."""
    server.call("HSET", RegistryKeys().peers, "later", '{"protocol":"rqp-mca","addresses":["a"],"tls":true}')
    edge = await start(server)
    queue = await edge.remote("away")
    await edge.tools.peers.apply("berlin", registered(peer.address))
    await edge.put(queue, b"one")
    await take_one(await peer.reserved(), b"one")
    await edge.tools.peers.delete("berlin")
    await until(lambda: not edge.service.registered.peers)
    (line,) = edge.log.events("peer_unreadable", peer_name="later")
    assert "peer later is left out" in line.getMessage()


async def test_peers_of_the_other_protocol_are_not_asked(server: Server, start: Start, peer: Peer) -> None:
    edge = await start(server, mca={"availability_timeout_s": 0.05})
    cast = {"protocol": "rqp-cast", "addresses": [peer.address]}
    await edge.tools.peers.apply("caster", PeerSpec.model_validate(cast))
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.has_condition(queue, "no_receiver: no peer is known"))
    assert peer.calls == []


async def test_what_is_out_to_a_dropped_peer_may_still_be_confirmed(
    server: Server, start: Start, peer: Peer, other_peer: Peer
) -> None:
    """3.4: but nothing more is sent there."""
    edge: LiveEdge = await start(server, mca={"data_timeout_s": 20.0})
    await edge.tools.peers.apply("it", registered(peer.address))
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await edge.tools.peers.apply("it", registered(other_peer.address))
    directory = edge.service.agents[0].directory  # type: ignore[attr-defined]
    await until(lambda: list(directory.endpoints(())) == [other_peer.address])
    call.confirm()
    await take_one(await other_peer.reserved(), b"two")
    await until(lambda: edge.is_empty(queue))


# addresses in settings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("10.0.0.7", ("10.0.0.7", 11311)),
        ("mca.example:5", ("mca.example", 5)),
        ("[::1]", ("::1", 11311)),
        ("[::1]:5", ("::1", 5)),
    ],
)
def test_addresses(text: str, place: tuple[str, int]) -> None:
    """1.1: the port is 11311 unless said otherwise."""
    assert parse_address(text) == place


@pytest.mark.parametrize("text", ["", ":5", "host:", "host:0", "host:65536", "::1", "a b", "host:5:6"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="write an address"):
        parse_address(text)
    with pytest.raises(ValueError, match="write an address"):
        McaPeer(addresses=(text,))
