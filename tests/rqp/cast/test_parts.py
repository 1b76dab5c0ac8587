"""Parts of the RQP/cast agents that need no network: notes, limits, ports, settings."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest
from pydantic import ValidationError

from protos.rqp_cast import MAX_U32, Kept, Offer, ReceiverSettings, SenderSettings
from services.rqp.cast.notes import Note
from services.rqp.cast.ports import ports as ports_module
from services.rqp.cast.ports.ports import ANY_PEER, PeerKey, Port, Ports
from services.rqp.cast.receiving.rate_limit import ADDRESSES, RateLimit
from services.rqp.cast.sending import declines
from services.rqp.cast.sending.declines import Declines
from services.rqp.cast.sending.prefetch_buffer import IDS_AT_ONCE, Ids
from services.rqp.cast.settings import CastSettings
from services.store import Store
from services.store.model.clock import Clock, now
from services.store.pipeline.messages import NOTE
from tests.live import until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, KEY, THERE, agent, port_range
from tests.servers import Server

RANGE = "20000-20001"


# notes


def test_notes_round_trip() -> None:
    """Check that notes of any content round-trip (4.2).

    Times are exact within the clocks' difference, since another machine may read them.
    """
    clock = Clock()
    for kept in (
        Kept(),
        Kept(failures=19, receiver="255.255.255.255", first_whole_at=now() - 86_000, not_before=now() + 60),
        Kept(receiver="10.0.0.1", first_whole_at=now()),
    ):
        text = Note(0xFFFF_FFFF, "255.255.255.255", kept).text(clock)
        assert NOTE.fullmatch(text), "the store must take it"
        found = Note.parse(text, clock, 60.0)
        assert found is not None
        assert (found.id, found.address) == (0xFFFF_FFFF, "255.255.255.255")
        assert (found.kept.failures, found.kept.receiver) == (kept.failures, kept.receiver)
        assert found.kept.first_whole_at == pytest.approx(kept.first_whole_at, abs=0.002)
        assert found.kept.not_before == pytest.approx(kept.not_before, abs=0.002)


@pytest.mark.parametrize(
    "text", ["", "cast1:0:1.1.1.1:0:-:-:-", "cast1:1:1.1.1.1:0:-:-", "cast2:1:1.1.1.1:0:-:-:-", "else"]
)
def test_foreign_note_is_ignored(text: str) -> None:
    assert Note.parse(text, Clock(), 60.0) is None


# ids


async def test_ids_wrap_around_without_zero(server: Server) -> None:
    """Check that ids wrap around without zero: 32 bits, each once, and 0 means none (2.3)."""
    store = Store(server.url, "test")
    await store.registry.next_ids(1)
    key = store.registry.keys.cast_ids
    by = (await store.registry.link.call("GET", key)).split()[0]
    await store.registry.link.call("SET", key, b"%b %d" % (by, MAX_U32 - 2 * IDS_AT_ONCE))
    ids = Ids(store)
    given = [await ids.next() for _ in range(3 * IDS_AT_ONCE)]
    assert len(set(given)) == len(given)
    assert (min(given), max(given)) == (1, MAX_U32)
    await store.close()


# limits


def test_questions_of_an_address_are_rate_limited() -> None:
    """Check that questions are rate-limited per address: a burst at once, then a rate (3.2)."""
    allowance = RateLimit(10)
    assert [allowance.take("a", 0.0) for _ in range(11)] == [True] * 10 + [False]
    assert allowance.take("b", 0.0)
    assert [allowance.take("a", 0.1) for _ in range(2)] == [True, False]
    assert [allowance.take("a", 100.0) for _ in range(11)] == [True] * 10 + [False]


def test_forged_addresses_cost_bounded_memory() -> None:
    """Check that forged addresses cost bounded memory (3.2)."""
    allowance = RateLimit(10)
    for number in range(3 * ADDRESSES):
        allowance.take(str(number), 0.0)
    assert len(allowance) == ADDRESSES


# ports


PEER, OTHER = PeerKey("10.0.0.1", 7), PeerKey("10.0.0.2", 7)
AWAY = "192.0.2.1"  # an address of no machine (RFC 5737)


class Machine:
    """Two processes of one machine, with the same two ports."""

    def __init__(self, rest_s: float = 60.0) -> None:
        numbers = CastSettings(receiver_ports=port_range(2)).receiver_range
        self.both = self.one, self.two = Ports(HERE, numbers, rest_s), Ports(HERE, numbers, rest_s)
        self._opened: list[Port] = []

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        for ports in self.both:
            ports.close()
        for port in self._opened:
            port.sock.close()
            port.mark.close()

    def open(self, ports: Ports, peer: PeerKey) -> Port:
        port = ports.open(peer)
        assert port is not None
        self._opened.append(port)
        return port

    def open_all(self, ports: Ports, peer: PeerKey) -> list[Port]:
        """Return both ports opened, or an empty list."""
        if not ports.has(1, peer):
            return []
        return [self.open(ports, peer) for _ in range(2)]


@pytest.mark.parametrize("peer", [PEER, ANY_PEER])
async def test_resting_port_is_not_used_for_the_same_peer(peer: PeerKey) -> None:
    """Check that a resting port is not used for the same peer until its rest ends (1.2).

    This holds for another process of this machine too, and for connects.
    """
    with Machine(rest_s=0.3) as machine:
        port = machine.open(machine.one, peer)
        port.close(rests=True)
        assert not machine.one.has(2, peer)
        with socket.socket() as late, pytest.raises(ConnectionRefusedError):
            late.connect((HERE, port.number))
        assert machine.open(machine.two, peer).number != port.number
        assert machine.two.open(peer) is None
        await until(lambda: machine.one.has(2, peer))
        assert machine.open(machine.two, peer).number == port.number


async def test_waiter_gets_a_port_after_its_rest() -> None:
    """Check that a waiter gets a port after its rest (1.2)."""
    with Machine(rest_s=0.1) as machine:
        first, _ = machine.open_all(machine.one, ANY_PEER)
        first.close(rests=True)
        again = await machine.one.opened(60.0)
        again.close(rests=False)
        assert again.number == first.number


@pytest.mark.parametrize("peer", [OTHER, PeerKey(PEER.peer, 8)])
async def test_resting_port_serves_other_peers(peer: PeerKey) -> None:
    """Check that a resting port serves other peers, and the same peer for other keys, in each process (1.2)."""
    with Machine() as machine:
        for port in machine.open_all(machine.one, PEER):
            port.close(rests=True)
        assert machine.one.open(PEER) is None
        assert machine.two.open(PEER) is None
        for ports in machine.both:
            for port in machine.open_all(ports, peer):
                assert not ports.has(2, peer)
                port.close(rests=False)
        machine.one.close()
        assert len(machine.open_all(machine.two, PEER)) == 2


async def test_port_is_assigned_after_it_was_opened() -> None:
    """Check that a port is assigned after it was opened, as it may rest for this peer, in each process (1.2)."""
    with Machine() as machine:
        first, second = machine.open_all(machine.one, ANY_PEER)
        assert first.assign(PEER)
        assert first.assign(PEER), "it is"
        first.close(rests=True)
        again = machine.open(machine.one, ANY_PEER)
        assert again.number == first.number
        assert not again.assign(PEER)
        assert again.assign(OTHER)
        second.close(rests=False)
        again.close(rests=True)
        found = {port.number: port for port in machine.open_all(machine.two, ANY_PEER)}
        assert not found[first.number].assign(PEER)
        assert not found[first.number].assign(OTHER)
        assert found[second.number].assign(PEER)


async def test_waiter_may_get_a_port_that_rests_for_another_peer() -> None:
    """Check that a waiter may get a port that rests for another peer (1.2)."""
    with Machine() as machine:
        first, _ = machine.open_all(machine.one, PEER)
        waiting = [asyncio.ensure_future(machine.one.opened(60.0, peer)) for peer in (PEER, OTHER)]
        await asyncio.sleep(0)
        first.close(rests=True)
        found = await waiting[1]
        assert found.number == first.number
        found.close(rests=False)
        waiting[0].cancel()


async def test_ports_without_rest_are_preferred() -> None:
    """Check that ports without rest are preferred: late messages for another peer would disturb the new user (1.2)."""
    with Machine() as machine:
        first, second = machine.open_all(machine.one, PEER)
        first.close(rests=True)
        second.close(rests=False)
        for _ in range(3):
            port = machine.open(machine.one, OTHER)
            assert port.number == second.number
            port.close(rests=False)


async def test_number_of_resting_ports_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the number of resting ports is limited, since each uses a descriptor (1.2)."""
    monkeypatch.setattr(ports_module, "MAX_RESTS", 4)
    with Machine() as machine:
        for peer in (PEER, OTHER):
            for port in machine.open_all(machine.one, peer):
                port.close(rests=True)
        assert machine.one.open(PeerKey("10.0.0.3", 7)) is None
        machine.one.close()
        assert machine.open(machine.one, PEER)


async def test_waiter_gets_the_first_free_port() -> None:
    """Check that a waiter gets the first free port (1.2)."""
    ports = Ports(HERE, CastSettings(receiver_ports=port_range(2)).receiver_range, 60.0)
    held = [port for _ in range(2) if (port := ports.open()) is not None]
    waiting = asyncio.ensure_future(ports.opened(60.0))
    await asyncio.sleep(0)
    assert ports.open() is None
    held[0].close(rests=False)
    assert (await waiting).number == held[0].number
    held[1].close(rests=True)
    assert not ports.has(1)
    ports.close()
    (await waiting).close(rests=False)


async def test_ports_of_a_missing_address() -> None:
    """Check that ports of a missing address are all available again when the machine has it (1.2)."""
    ports = Ports(AWAY, CastSettings(sender_ports=port_range(2)).sender_range, 60.0)
    for _ in range(3):
        assert ports.open(PEER) is None
        assert ports.has(2, PEER)


async def test_port_that_failed_to_open_stays_available(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a port that failed to open stays available after any error (1.2)."""

    def fail(*_: object) -> socket.socket:
        raise OSError(errno.EIO, "a fault of the machine")

    with Machine() as machine:
        with monkeypatch.context() as patch:
            patch.setattr(ports_module, "_listening", fail)
            for _ in range(3):
                with pytest.raises(OSError, match="a fault of the machine"):
                    machine.one.open(PEER)
        assert len(machine.open_all(machine.one, PEER)) == 2


# settings


async def test_concurrent_declines_are_limited(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that concurrent declines are limited: further receivers wait for T_WAIT2 (3.3)."""
    edge = await machines.sender()
    monkeypatch.setattr(declines, "MAX_DECLINED", 2)
    found = Declines(edge.service.settings.cast, agent(edge).machines)
    with HandReceiver(machines.net) as receiver:
        offer = Offer(THERE, THERE, KEY, receiver.accept_port.getsockname()[1], 1)
        for _ in range(3):
            found.decline(offer)
        for _ in range(2):
            assert await receiver.is_declined()
        found.decline(offer)
        assert await receiver.is_declined(), "earlier declines have ended"
        with pytest.raises(BlockingIOError):
            receiver.accept_port.accept()
    await found.close()


def test_default_times_are_those_of_the_spec() -> None:
    """Check that default times are those of the spec (3, 4.2)."""
    settings = CastSettings()
    assert settings.sender() == SenderSettings()
    assert settings.receiver(settings) == ReceiverSettings()


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"host": "::1"}, "IPv4"),
        ({"address": "10.0.0"}, "IPv4"),
        ({"receiver_ports": "11320"}, "first-last"),
        ({"receiver_ports": "11321-11320"}, "first-last"),
        ({"receiver_ports": "11320-70000"}, "first-last"),
        ({"receiver_ports": "11320-11320"}, "two ports"),
        ({"sender_ports": "0-10"}, "first-last"),
        ({"hold_margin_s": 86_400.0}, "less than dedupe_window_s"),
        ({"peers": {"x": {"addresses": ["::1"]}}}, "IPv6"),
        ({"peers": {"x": {"addresses": ["a b"]}}}, "one machine"),
        ({"peers": {"x": {"addresses": ["# none"]}}}, "one machine"),
        ({"peers": {"x": {"addresses": []}}}, "at least 1"),
        ({"max_message_bytes": 1 << 24}, "less than or equal"),
        ({"t_wait1_s": 0}, "greater than 0"),
        ({"t_wait5_s": 1}, "not permitted"),
    ],
)
def test_invalid_settings_are_rejected(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        CastSettings.model_validate(fields)
