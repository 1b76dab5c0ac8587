"""A TCP connection between two nodes: ordered, with delay; it can stall, be reset, or end without notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from protos.ring import Loop
from tests.ring.simulation.clock import Clock

KEEP_ALIVE_S = 140.0  # 60 s idle, then 8 probes every 10 s (ring.md 2.6)
CONNECT_S = 30.0  # ring.md 2.6

Wire = Loop | bytes  # a LOOP, or the payload of a USER


class Peer(Protocol):
    """The interface that a link calls in the node at each of its ends."""

    name: bytes

    def dialled(self, link: Link) -> None: ...
    def not_dialled(self, link: Link) -> None: ...
    def answered(self, link: Link) -> None: ...
    def outbound_gone(self, link: Link, why: str) -> None: ...
    def came(self, link: Link, message: Wire) -> None: ...
    def inbound_gone(self, link: Link, why: str) -> None: ...


class Medium(Protocol):
    """The network that carries links.

    `off`: machines; `stopped`: processes that hang; `epoch` counts changes of partitions.
    """

    clock: Clock
    epoch: int
    off: set[bytes]
    stopped: set[bytes]

    def delay(self) -> float: ...
    def reaches(self, one: bytes, other: bytes) -> bool: ...


class Link:
    """A link from the node that dialled, its head, to the one that accepted, its tail."""

    __slots__ = (
        "_head_at",
        "_held",
        "_network",
        "_tail_at",
        "head",
        "head_is_open",
        "is_settled",
        "number",
        "tail",
        "tail_is_open",
        "tail_name",
    )

    def __init__(self, network: Medium, number: int, head: Peer, tail_name: bytes) -> None:
        self.number = number
        self.head = head
        self.tail_name = tail_name
        self.tail: Peer | None = None
        self.head_is_open = True
        self.tail_is_open = False
        self.is_settled = False  # the dial has succeeded or failed
        self._network = network
        self._head_at = self._tail_at = 0.0  # arrival time of the last octets
        self._held: list[tuple[Callable[..., None], tuple[object, ...]]] = []

    @property
    def is_reachable(self) -> bool:
        return self._network.reaches(self.head.name, self.tail_name)

    # calls by the ends

    def send(self, message: Wire) -> None:
        self._to_tail(self._message, message)

    def answer(self) -> None:
        if self.tail_is_open:
            self._to_head(self._answer)

    def close_head(self) -> None:
        if self.head_is_open:
            self.head_is_open = False
            if self.tail is not None:
                self._to_tail(self._end_tail, "closed")
                self.watch()

    def close_tail(self) -> None:
        if self.tail_is_open:
            self.tail_is_open = False
            self._to_head(self._end_head, "closed")
            self.watch()

    # effects of the network

    def vanish(self, peer: Peer) -> None:
        """Note that the machine at one end is off, which sends no notice."""
        self.head_is_open = self.head_is_open and self.head is not peer
        self.tail_is_open = self.tail_is_open and self.tail is not peer
        self.watch()

    def watch(self) -> None:
        """Start keep-alive, which detects octets that never arrive."""
        self._network.clock.after(KEEP_ALIVE_S, self._keep_alive, self._network.epoch)

    def reset(self) -> None:
        """Note that the machine is back without this connection: the other end learns that when it sends."""
        if self.head_is_open != self.tail_is_open and self.is_reachable:
            self._end_head("reset")
            self._end_tail("reset")

    def flow_again(self) -> None:
        if self._held:
            self._network.clock.after(self._network.delay(), self._flow)

    def _flow(self) -> None:
        held, self._held = self._held, []
        for call, args in held:
            call(*args)

    def _keep_alive(self, epoch: int) -> None:
        if {self.head.name, self.tail_name} & self._network.stopped:
            return  # the machine's system answers the probes
        is_cut = not self.is_reachable and epoch == self._network.epoch
        if is_cut or not self.head_is_open or not self.tail_is_open:
            self._end_head("keep-alive")
            self._end_tail("keep-alive")

    def _to_tail(self, call: Callable[..., None], *args: object) -> None:
        clock = self._network.clock
        self._tail_at = max(self._tail_at, clock.now + self._network.delay())
        clock.at(self._tail_at, call, *args)

    def _to_head(self, call: Callable[..., None], *args: object) -> None:
        clock = self._network.clock
        self._head_at = max(self._head_at, clock.now + self._network.delay())
        clock.at(self._head_at, call, *args)

    def _is_held(self, end: bytes, call: Callable[..., None], *args: object) -> bool:
        """Hold calls to `end`, in order, while it is stopped or behind a partition; return whether this one is held."""
        if self._held or not self.is_reachable or end in self._network.stopped:
            self._held.append((call, args))
            return True
        return False

    def _message(self, message: Wire) -> None:
        if self._is_held(self.tail_name, self._message, message):
            return
        if self.tail_is_open and self.tail is not None:
            self.tail.came(self, message)
        elif self.tail_name not in self._network.off:
            self._to_head(self._end_head, "reset")

    def _answer(self) -> None:
        if not self._is_held(self.head.name, self._answer) and self.head_is_open:
            self.head.answered(self)

    def _end_tail(self, why: str) -> None:
        if why == "closed" and self._is_held(self.tail_name, self._end_tail, why):
            return
        if self.tail_is_open and self.tail is not None:
            self.tail_is_open = False
            self.tail.inbound_gone(self, why)

    def _end_head(self, why: str) -> None:
        if why == "closed" and self._is_held(self.head.name, self._end_head, why):
            return
        if self.head_is_open:
            self.head_is_open = False
            self.head.outbound_gone(self, why)
