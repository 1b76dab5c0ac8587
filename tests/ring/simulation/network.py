"""The network: beacons to all nodes, some of them lost; dials; partitions; machines that are off."""

from __future__ import annotations

from random import Random
from typing import Protocol

from protos.ring import Beacon
from tests.ring.simulation.clock import Clock
from tests.ring.simulation.link import CONNECT_S, Link, Peer


class Host(Peer, Protocol):
    """One life of a node, as the network sees it."""

    is_alive: bool

    def hear(self, beacon: Beacon) -> None: ...
    def listens(self, service: bytes) -> bool: ...
    def accept(self, link: Link) -> None: ...


class Surroundings(Protocol):
    """The environment of a node."""

    clock: Clock
    network: Network

    def note(self, name: bytes, what: str, other: bytes | str = "") -> None: ...


class Network:
    """A network with delays of 0.2 to 5 ms, and sometimes 200."""

    def __init__(self, clock: Clock, rng: Random, beacon_loss: float) -> None:
        self.clock = clock
        self.hosts: dict[bytes, Host] = {}
        self.off: set[bytes] = set()  # whole machines
        self.stopped: set[bytes] = set()  # processes that hang: their system keeps their connections
        self.links: list[Link] = []
        self.epoch = 0  # number of changes of partitions
        self.beacons = 0
        self._random = rng.random
        self._beacon_loss = beacon_loss
        self._sides: dict[bytes, int] = {}
        self._count = 0

    def delay(self) -> float:
        chance = self._random()
        return 0.2 if chance < 0.002 else 0.0002 + 0.005 * chance

    def reaches(self, one: bytes, other: bytes) -> bool:
        sides = self._sides
        return not sides or one == other or sides.get(one, 0) == sides.get(other, 0)

    # beacons

    def broadcast(self, sender: bytes, beacon: Beacon) -> None:
        self.beacons += 1
        for name, host in self.hosts.items():
            if name == sender or (self.reaches(sender, name) and self._random() >= self._beacon_loss):
                self.clock.after(self.delay(), _deliver, host, beacon)

    # connections

    def dial(self, head: Host, node: bytes, service: bytes) -> Link:
        self._count += 1
        link = Link(self, self._count, head, node)
        self.clock.after(self.delay(), self._arrive, link, service)
        self.clock.after(CONNECT_S, self._refuse, link)
        return link

    def _arrive(self, link: Link, service: bytes) -> None:
        if not link.is_reachable or link.tail_name in self.off:
            return  # until the time is up
        host = self.hosts.get(link.tail_name)
        if host is None or not host.listens(service) or not link.head_is_open:
            self.clock.after(self.delay(), self._refuse, link)
            return
        link.tail, link.tail_is_open = host, True
        self.links.append(link)
        if host.name not in self.stopped:
            host.accept(link)
        self.clock.after(self.delay(), self._settle, link)

    def _settle(self, link: Link) -> None:
        if link.head_is_open and not link.is_settled:
            link.is_settled = True
            link.head.dialled(link)

    def _refuse(self, link: Link) -> None:
        if link.head_is_open and not link.is_settled:
            link.is_settled = True
            link.head_is_open = False
            link.head.not_dialled(link)

    # faults

    def partition(self, sides: dict[bytes, int]) -> None:
        """Partition the network: hosts with different numbers cannot reach each other; {} heals."""
        self._sides = sides
        self.epoch += 1
        self._forget_links()
        for link in self.links:
            if link.is_reachable:
                link.flow_again()
            else:
                link.watch()

    def end_process(self, host: Host) -> None:
        """End a process: its system closes all its connections."""
        self._remove(host)
        for link in self.links:
            if link.head is host:
                link.close_head()
            if link.tail is host:
                link.close_tail()

    def stop_process(self, host: Host) -> None:
        """Stop a process as by SIGSTOP; its connections stay open."""
        host.is_alive = False
        self.stopped.add(host.name)

    def switch_off(self, host: Host) -> None:
        self._remove(host)
        self.off.add(host.name)
        for link in self.links:
            if link.head is host or link.tail is host:
                link.vanish(host)

    def switch_on(self, name: bytes) -> None:
        self.off.discard(name)
        self._forget_links()
        for link in self.links:
            if name in (link.head.name, link.tail_name):
                self.clock.after(60.0 * self._random(), link.reset)

    def _remove(self, host: Host) -> None:
        host.is_alive = False
        self.hosts.pop(host.name, None)
        self._forget_links()

    def _forget_links(self) -> None:
        self.links = [link for link in self.links if link.head_is_open or link.tail_is_open]


def _deliver(host: Host, beacon: Beacon) -> None:
    if host.is_alive:
        host.hear(beacon)
