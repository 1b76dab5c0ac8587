"""A scripted peer with a greeting and an answer to each chunk that it reads; and a tiny plan."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.generator import Bound, Generator
from benchmarks.machine import describe
from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import SHAPES, dial
from benchmarks.peers.redis import Store
from benchmarks.plan import Plan
from benchmarks.process import Workshop, workshop
from benchmarks.results import Results

Answer = Callable[[bytes], bytes]
CLOSE = b"close"  # an answer that closes the connection
PIECE = 7  # size of the parts of a split answer: no reply of any peer is a multiple of it
TINY = Plan(
    rounds=1,
    put=dict.fromkeys(SHAPES, Bound(400, 20)),
    paced_seconds=0.02,
    idle_connections=20,
    depths=(10, 20),
    depth_messages=80,
    store_messages=1000,
    fanout=Bound(300, 20),
    subscriptions=100,
    subscribers=20,
    subscribed=Bound(400, 20),
    delivery_seconds=0.05,
    rqp=Bound(200, 20),
    rqp_carried=100,
    rqp_sessions=16,
    ring_trips=40,
    ring_lone_trips=10,
)


class Server:
    """A server on loopback; a thread for each connection answers chunk by chunk, in small pieces."""

    def __init__(self) -> None:
        self.received = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.sockets: list[socket.socket] = []

    def dial(self, make_answer: Callable[[], Answer]) -> socket.socket:
        """Return a connection whose other end answers each chunk by a new `make_answer()`."""
        near = dial(self._listener.getsockname()[1])
        far, _ = self._listener.accept()
        thread = threading.Thread(target=self._serve, args=(far, make_answer()))
        thread.start()
        self._threads.append(thread)
        self.sockets.append(near)
        return near

    def _serve(self, far: socket.socket, answer: Answer) -> None:
        with far, contextlib.suppress(ConnectionError):
            while chunk := far.recv(65536):
                self.received += chunk
                reply = answer(chunk)
                if reply.startswith(CLOSE):
                    return
                for at in range(0, len(reply), PIECE):
                    far.sendall(reply[at : at + PIECE])

    def close(self) -> None:
        for each in self.sockets:
            each.close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server and close it after the test; then `received` is complete."""
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    """Return the C generator, or the Python one if there is no compiler."""
    return Generator.build(tmp_path_factory.mktemp("generator"))


@pytest.fixture(params=["built", "python"])
def generator(request: pytest.FixtureRequest, built: Generator) -> Generator:
    """Return each generator in turn: every test runs with both."""
    return built if request.param == "built" else Generator.python()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        yield made


@pytest.fixture
def bench(place: Workshop, built: Generator) -> Bench:
    store = Store(place)
    results = Results("2026-11-21T10:00:00", describe(place.folder, 0.2), built.language, 2, True, "")
    return Bench(place, built, TINY, store, {}, results, say=lambda text: None)
