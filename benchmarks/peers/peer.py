"""Base classes of peers: a name, a guarantee, and a queue that is filled and emptied."""

from __future__ import annotations

import contextlib
import enum
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.generator import Bound, Generator, Load, LoadFailed, Outcome
from benchmarks.process import Daemon, Workshop

BODY = bytes(33 + i * 7 % 94 for i in range(100))  # 100 bytes, printable, no run of one byte
SOCKET_TIMEOUT_S = 10.0
TAKE_EXTRA = 5  # a take may last so many times as long as the put before it


class Operation(enum.Enum):
    PUT = "put"  # ENQ, XADD, publish: answered when the peer has it
    TAKE = "take"  # DNQ, fetch, reserve: the message, and its acknowledgement


@dataclass(frozen=True, slots=True)
class Shape:
    """The concurrency of a load: `connections` sockets with `window` messages in flight on each."""

    connections: int
    window: int

    @property
    def name(self) -> str:
        return f"{self.connections} x {self.window}"


IN_FLIGHT = Shape(10, 200)
ONE_AT_A_TIME = Shape(50, 1)
SHAPES = (IN_FLIGHT, ONE_AT_A_TIME)


def dial(port: int) -> socket.socket:
    """Connect to 127.0.0.1, without Nagle's delay."""
    sock = socket.create_connection(("127.0.0.1", port), SOCKET_TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read_until(sock: socket.socket, is_whole: Callable[[bytes], bool]) -> bytes:
    """Receive until `is_whole(data)`. Raises OSError if the peer closes or stays silent."""
    data = b""
    while not is_whole(data):
        chunk = sock.recv(65536)
        if not chunk:
            raise ConnectionError(f"closed after {data[:80]!r}")
        data += chunk
    return data


class Peer(ABC):
    """A measured server. `start` raises NotRun if it is unavailable here."""

    name: str
    title: str
    promise: str
    operations: ClassVar[tuple[Operation, ...]] = (Operation.PUT, Operation.TAKE)

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        """Run one round of one shape on a new queue, which is deleted afterwards."""


class WirePeer(Peer):
    """A peer that is loaded by the project's own generator."""

    daemon: Daemon
    port: int
    _queues: int = 0

    @abstractmethod
    def connect(self) -> socket.socket:
        """Return a greeted connection, without a queue."""

    @abstractmethod
    def create(self, queue: str) -> None: ...

    @abstractmethod
    def delete(self, queue: str) -> None: ...

    @abstractmethod
    def put_load(self, shape: Shape, queue: str) -> Load: ...

    @abstractmethod
    def take_load(self, shape: Shape, queue: str) -> Load: ...

    def next_queue(self) -> str:
        self._queues += 1
        return f"bench{self._queues}"

    def measure(self, generator: Generator, shape: Shape, bound: Bound) -> dict[Operation, Outcome]:
        queue = self.next_queue()
        self.create(queue)
        try:
            outcomes = {Operation.PUT: self.put(generator, shape, bound, queue)}
            if Operation.TAKE in self.operations:
                filled = outcomes[Operation.PUT].settled
                limit = Bound(filled, bound.seconds * TAKE_EXTRA)
                outcomes[Operation.TAKE] = self.take(generator, shape, limit, queue)
            return outcomes
        finally:
            self.delete(queue)

    def put(self, generator: Generator, shape: Shape, bound: Bound, queue: str) -> Outcome:
        """Run a put. Raises LoadFailed if the peer refused any message."""
        with contextlib.closing(self.put_load(shape, queue)) as load:
            outcome = generator.run(load, bound)
        if outcome.refused:
            raise LoadFailed(f"{outcome.refused:,} of {bound.count:,} messages were refused")
        return outcome

    def take(self, generator: Generator, shape: Shape, bound: Bound, queue: str) -> Outcome:
        """Run a take. Raises LoadFailed if any message is missing."""
        with contextlib.closing(self.take_load(shape, queue)) as load:
            outcome = generator.run(load, bound)
        if outcome.settled < bound.count:
            raise LoadFailed(
                f"only {outcome.settled:,} of {bound.count:,} messages came out in {bound.seconds:g} s"
            )
        return outcome

    def load(self, shape: Shape, rule: str, request: bytes, **options: object) -> Load:
        """Return a load with the same request on every connection of the shape."""
        sockets = [self.connect() for _ in range(shape.connections)]
        return Load(rule, sockets, [request] * len(sockets), shape.window, **options)  # type: ignore[arg-type]
