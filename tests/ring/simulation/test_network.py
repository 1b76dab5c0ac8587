"""The simulated network: order, loss, partitions that stall, machines that end without notice."""

from __future__ import annotations

from random import Random

import pytest

from protos.ring import Beacon, Find, Leader
from tests.ring.simulation.clock import Clock
from tests.ring.simulation.link import CONNECT_S, KEEP_ALIVE_S, Link, Wire
from tests.ring.simulation.network import Network

PORT = b"8085"
MESSAGES: list[Wire] = [b"%d" % number for number in range(200)]


class Recorder:
    """A host that records its calls."""

    def __init__(self, network: Network, name: bytes) -> None:
        self.name = name
        self.is_alive = True
        self.events: list[object] = []
        self.link: Link | None = None
        network.hosts[name] = self

    def hear(self, beacon: Beacon) -> None:
        self.events.append(beacon)

    def listens(self, service: bytes) -> bool:
        return service == PORT

    def accept(self, link: Link) -> None:
        self.link = link

    def dialled(self, link: Link) -> None:
        self.link = link

    def not_dialled(self, link: Link) -> None:
        self.events.append("not dialled")

    def answered(self, link: Link) -> None:
        self.events.append("A")

    def outbound_gone(self, link: Link, why: str) -> None:
        self.events.append(why)

    def came(self, link: Link, message: Wire) -> None:
        self.events.append(message)
        link.answer()

    def inbound_gone(self, link: Link, why: str) -> None:
        self.events.append(why)


@pytest.fixture
def network() -> Network:
    return Network(Clock(), Random(7), beacon_loss=0.2)


def connected(network: Network) -> tuple[Recorder, Recorder, Link]:
    head, tail = Recorder(network, b"head"), Recorder(network, b"tail")
    network.dial(head, b"tail", PORT)
    network.clock.run_until(1.0)
    assert head.link is not None
    assert head.link is tail.link
    return head, tail, head.link


def test_link_keeps_order_and_carries_answers(network: Network) -> None:
    head, tail, link = connected(network)
    for message in MESSAGES:
        link.send(message)
    network.clock.run_until(3.0)
    assert tail.events == MESSAGES
    assert head.events == ["A"] * len(MESSAGES)


def test_fin_follows_sent_messages(network: Network) -> None:
    head, tail, link = connected(network)
    link.send(b"last")
    network.end_process(head)
    network.clock.run_until(3.0)
    assert tail.events == [b"last", "closed"]
    assert head.events == []


def test_partition_delays_but_keeps_order(network: Network) -> None:
    _, tail, link = connected(network)
    link.send(b"on its way")
    network.partition({b"tail": 1})
    link.send(b"first")
    network.clock.run_until(50.0)
    assert tail.events == []
    network.partition({})
    link.send(b"second")
    link.close_head()
    network.clock.run_until(60.0)
    assert tail.events == [b"on its way", b"first", b"second", "closed"]


def test_keepalive_detects_partitions_and_dead_machines(network: Network) -> None:
    head, tail, _ = connected(network)
    network.partition({b"tail": 1})
    network.clock.run_until(KEEP_ALIVE_S)
    assert head.events == tail.events == []
    network.clock.run_until(2.0 + KEEP_ALIVE_S)
    assert head.events == tail.events == ["keep-alive"]
    network.partition({})
    head, tail, link = connected_again(network, head, tail)
    network.switch_off(tail)
    link.send(b"lost")
    network.clock.run_until(network.clock.now + 1.0 + KEEP_ALIVE_S)
    assert head.events == ["keep-alive", "keep-alive"]


def connected_again(network: Network, head: Recorder, tail: Recorder) -> tuple[Recorder, Recorder, Link]:
    network.dial(head, b"tail", PORT)
    network.clock.run_until(network.clock.now + 1.0)
    assert head.link is not None
    return head, tail, head.link


def test_restarted_machine_resets_its_links(network: Network) -> None:
    head, tail, link = connected(network)
    network.switch_off(tail)
    network.clock.run_until(5.0)
    network.switch_on(b"tail")
    link.send(b"hello")
    network.clock.run_until(10.0)
    assert head.events == ["reset"]
    assert tail.events == []


def test_dials_are_refused_at_once_or_in_vain_for_30_s(network: Network) -> None:
    head, tail = Recorder(network, b"head"), Recorder(network, b"tail")
    network.dial(head, b"tail", b"another port")
    network.dial(head, b"missing", PORT)
    network.clock.run_until(1.0)
    assert head.events == ["not dialled"] * 2
    network.switch_off(tail)
    network.dial(head, b"tail", PORT)
    network.clock.run_until(CONNECT_S)
    assert len(head.events) == 2
    network.clock.run_until(2.0 + CONNECT_S)
    assert len(head.events) == 3


def test_own_beacons_are_never_lost(network: Network) -> None:
    one, other, far = (Recorder(network, name) for name in (b"one", b"other", b"far"))
    network.partition({b"far": 1})
    for _ in range(1000):
        network.broadcast(b"one", Find(7, b"one"))
    network.clock.run_until(1.0)
    assert len(one.events) == 1000
    assert 700 < len(other.events) < 900
    assert far.events == []


def test_loops_are_carried_by_links(network: Network) -> None:
    _, tail, link = connected(network)
    link.send(Leader(b"head", 0))
    network.clock.run_until(2.0)
    assert tail.events == [Leader(b"head", 0)]
