"""Sources of the list of receiving MCAs, and changes while messages wait (rqp_mca.md 3.4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protos.rqp_cast import Host
from protos.rqp_mca import AvailableConfirm, Profile, QueueConfirm, QueueRequest
from services.rqp.mca.rqprc import read_machine
from services.rqp.mca.settings import McaPeer, parse_address
from services.store.model.keys import RegistryKeys
from services.store.model.peer import PeerSpec
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.peer import McaPeer as Peer
from tests.rqp.mca.peer import registered, take_one
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


def write(file: Path, text: str) -> None:
    """Write as an editor does: readers see the old or the new content."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


# the file


async def test_changed_file_updates_the_peers(
    server: Server, start: Start, peer: Peer, other_peer: Peer, tmp_path: Path
) -> None:
    """Check that a changed file updates the peers, one receiving MCA per line.

    A new one is asked at once and ends a pause; a removed one is forgotten.
    """
    file = tmp_path / ".rqprc"
    file.write_text("# no machine yet\n")
    edge = await start(
        server,
        mca={"rqprc": str(file), "availability_timeout_s": 5.0, "first_pause_s": 60.0, "max_pause_s": 60.0},
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


async def test_bad_lines_are_skipped(server: Server, start: Start, peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / ".rqprc"
    file.write_text(f"two words\n{peer.address}\n1.2.3.4.5\n")
    edge = await start(server, mca={"rqprc": str(file)})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await take_one(await peer.reserved(), b"one")
    assert [line.line for line in edge.log.events("rqprc_line_skipped")] == [1, 3]


async def test_ipv6_in_the_file(server: Server, start: Start, tmp_path: Path) -> None:
    """Check that the file may have IPv6 addresses (1.1), unlike RQP/cast.

    The name is the line without the port.
    """
    async with Peer("::1") as peer:
        file = tmp_path / ".rqprc"
        file.write_text(f"::1\n[::1]:{peer.port} # here\n[::1]:0\n")
        edge = await start(server, mca={"rqprc": str(file)})
        queue = await edge.remote("away", peers=["[::1]"])
        await edge.put(queue, b"one")
        await take_one(await peer.reserved(), b"one")
        assert [line.line for line in edge.log.events("rqprc_line_skipped")] == [1, 3]


@pytest.mark.parametrize(
    ("word", "machine"),
    [
        ("[::1]", Host("[::1]", 11311)),
        ("[fe80::0:1]:5", Host("[fe80::1]", 5)),
        ("mca.example:5", Host("mca.example", 5)),
        ("10.0.0.7", Host("10.0.0.7", 11311)),
    ],
)
def test_lines_of_the_file(word: str, machine: Host) -> None:
    assert read_machine(word, 11311) == machine


@pytest.mark.parametrize(
    "word", ["::1", "[::1", "[::1]5", "[::1]:", "[::1]:65536", "[10.0.0.7]", "[]", "host:5:6"]
)
def test_invalid_lines_are_rejected(word: str) -> None:
    problem = read_machine(word, 11311)
    assert isinstance(problem, str)
    assert "RQP/cast" not in problem


async def test_missing_file_is_logged_and_read_later(
    server: Server, start: Start, peer: Peer, tmp_path: Path
) -> None:
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
    """Check that peers in the store are applied and deleted while the edge runs, with their profile and window."""
    edge = await start(server)
    queue = await edge.remote("away", peers=["berlin"])
    await edge.put(queue, b"one", b"two")
    await edge.tools.peers.apply("paris", registered(other_peer.address), "cli")
    await edge.tools.peers.apply("berlin", registered(peer.address, profile="word", window=2), "cli")
    call = await peer.reserved()
    assert call.parser.profile is Profile.WORD
    assert await call.bodies(2) == [b"one", b"two"]
    call.confirm(2)
    await until(lambda: edge.is_empty(queue))
    await edge.tools.peers.delete("berlin")
    await call.ended()
    assert other_peer.calls == []
    await edge.put(queue, b"three")
    await edge.tools.peers.apply("berlin", registered(other_peer.address), "cli")
    await take_one(await other_peer.reserved(), b"three")
    await until(lambda: edge.is_empty(queue))


async def test_unreadable_document_hides_no_other(server: Server, start: Start, peer: Peer) -> None:
    """Check that an unreadable document hides no other and is logged once: a newer version may have written it."""
    server.call("HSET", RegistryKeys().peers, "later", '{"protocol":"rqp-mca","addresses":["a"],"tls":true}')
    edge = await start(server)
    queue = await edge.remote("away")
    await edge.tools.peers.apply("berlin", registered(peer.address), "cli")
    await edge.put(queue, b"one")
    await take_one(await peer.reserved(), b"one")
    await edge.tools.peers.delete("berlin")
    await until(lambda: not edge.service.registered.peers)
    (line,) = edge.log.events("peer_unreadable", peer_name="later")
    assert "peer later is ignored" in line.getMessage()


async def test_peers_of_the_other_protocol_are_not_asked(server: Server, start: Start, peer: Peer) -> None:
    edge = await start(server, mca={"availability_timeout_s": 0.05})
    cast = {"protocol": "rqp-cast", "addresses": [peer.address]}
    await edge.tools.peers.apply("caster", PeerSpec.model_validate(cast), "cli")
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    await until(lambda: edge.has_condition(queue, "no_receiver: no peer is known"))
    assert peer.calls == []


async def test_messages_in_flight_to_a_removed_peer_may_be_confirmed(
    server: Server, start: Start, peer: Peer, other_peer: Peer
) -> None:
    """Check that messages in flight to a removed peer may be confirmed, and no more are sent there (3.4)."""
    edge: LiveEdge = await start(server, mca={"data_timeout_s": 20.0})
    await edge.tools.peers.apply("it", registered(peer.address), "cli")
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two")
    call = await peer.reserved()
    assert await call.body() == b"one"
    await edge.tools.peers.apply("it", registered(other_peer.address), "cli")
    directory = edge.service.agents[0].directory  # type: ignore[attr-defined]
    await until(lambda: list(directory.endpoints(())) == [other_peer.address])
    call.confirm()
    await take_one(await other_peer.reserved(), b"two")
    await until(lambda: edge.is_empty(queue))


# the same name in several places (docs/rqp-mca.md, Peers: the first place defines it)


async def test_settings_override_the_store_and_the_store_the_file(
    server: Server, start: Start, tmp_path: Path
) -> None:
    file = tmp_path / ".rqprc"
    file.write_text("one:1\ntwo:1\nthree:1\n")
    dns = {
        name: f"127.0.0.{number}" for number, name in enumerate(("one", "two", "three", "store", "said"), 1)
    }

    async def look_up(name: str) -> list[str]:
        return [dns[name]]

    mca = {"rqprc": str(file), "peers": {"three": {"addresses": ["said:3"]}}}
    edge = await start(server, look_up=look_up, mca=mca)
    for name in ("two", "three"):
        await edge.tools.peers.apply(name, registered("store:2"), "cli")
    directory = edge.service.agents[0].directory  # type: ignore[attr-defined]

    def found() -> list[list[str]]:
        return [list(directory.endpoints([name])) for name in ("one", "two", "three")]

    await until(lambda: found() == [["127.0.0.1:1"], ["127.0.0.4:2"], ["127.0.0.5:3"]])
    await edge.tools.peers.delete("two")
    await until(lambda: found()[1] == ["127.0.0.2:1"])


async def test_another_profile_is_another_receiving_mca(server: Server, start: Start, peer: Peer) -> None:
    """Check that another profile is another receiving MCA (1.2).

    Which of them the peer understands is unknown, so it is asked in both.
    """
    peers = {
        profile.value: {"addresses": [peer.address], "profile": profile.value}
        for profile in (Profile.PACKED, Profile.WORD)
    }
    edge = await start(server, mca={"peers": peers, "availability_timeout_s": 20.0})
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    calls = [await peer.asked(), await peer.asked()]
    assert {call.parser.profile for call in calls} == {Profile.PACKED, Profile.WORD}


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
    """Check addresses: the default port is 11311 (1.1)."""
    assert parse_address(text) == place


@pytest.mark.parametrize("text", ["", ":5", "host:", "host:0", "host:65536", "::1", "a b", "host:5:6"])
def test_invalid_addresses_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="write an address"):
        parse_address(text)
    with pytest.raises(ValueError, match="write an address"):
        McaPeer(addresses=(text,))
