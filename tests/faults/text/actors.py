"""Publishers and subscribers of a run. They reconnect when a connection breaks, and record what they send and get."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count

from tests.faults.text.edges import TextEdge
from tests.faults.text.history import History, Life, Sent, Subscription

TAGS = (b"a", b"ab", b"abc", b"b", b"b/1", b"~")
PATTERNS = (
    (b"a*",),
    (b"ab",),
    (b"ab*", b"b"),
    (b"b*", b"b/1", b"b/*"),
    (b"~", b"a"),
    (b"abc", b"ab*", b"a*", b"~*"),
)
PUBLISHERS = 4
SUBSCRIBERS = 12
CONNECT_S = 5.0
ANSWER_S = 60.0  # stopped processes resume within seconds; a longer wait is a fault of the edge
PAUSE_S = 0.1  # delay before reconnecting
PAUSES = 0.003  # probability that a slow reader pauses before a line
SMALL_BUFFER = 8 << 10  # receive buffer of a slow reader, in octets
FLOOD = 200  # number of large messages occasionally sent at once
LARGE = 6000  # size of some messages in octets, so that data piles up for slow readers

GONE = (OSError, TimeoutError, asyncio.IncompleteReadError)


class Silent(Exception):
    """An edge did not answer a client."""


@dataclass(slots=True)
class World:
    """State shared by all actors."""

    seed: int
    edges: list[TextEdge]
    stores: dict[str, int]  # store of each edge
    history: History = field(default_factory=History)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # set: publishers stop
    hurrying: asyncio.Event = field(default_factory=asyncio.Event)  # set: slow readers stop pausing


async def connect(edge: TextEdge, buffer: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to an edge. Raise one of GONE if that fails."""
    sock = socket.socket()
    if buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    try:
        async with asyncio.timeout(CONNECT_S):
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", edge.port))
            return await asyncio.open_connection(sock=sock, limit=1 << 16)
    except BaseException:
        sock.close()
        raise


class Publisher:
    """A publisher that numbers its messages; it does not reuse numbers of unanswered ones."""

    def __init__(self, world: World, name: str, edges: list[TextEdge]) -> None:
        self._world = world
        self._name = name
        self._edges = edges
        self._rng = random.Random(f"{world.seed} {name}")
        self._numbers = count(1)

    async def play(self) -> None:
        """Publish until the run stops. Raise Silent if an edge does not answer."""
        while not self._world.stopping.is_set():
            with contextlib.suppress(*GONE):
                await self._session(self._rng.choice(self._edges))
            await asyncio.sleep(self._rng.uniform(0, 2 * PAUSE_S))

    async def send_once(self, edge: TextEdge, tags: tuple[bytes, ...]) -> bool:
        """Send one SEND per tag and return whether all were answered OK. Raise Silent if one is not answered."""
        sends: list[Sent] = []
        with contextlib.suppress(*GONE):
            reader, writer = await connect(edge)
            try:
                number = self._world.history.connection()
                sends = [self._sent(edge, number, tag) for tag in tags]
                await self._ask(reader, writer, sends)
            finally:
                writer.transport.abort()
        return bool(sends) and all(send.is_certain for send in sends)

    async def _session(self, edge: TextEdge) -> None:
        reader, writer = await connect(edge)
        rng, number = self._rng, self._world.history.connection()
        try:
            for _ in range(rng.randint(5, 400)):
                if self._world.stopping.is_set():
                    break
                is_flood = rng.random() < 0.005
                much = FLOOD if is_flood else rng.choice((1, 1, 5, 20))
                sends = [self._sent(edge, number, rng.choice(TAGS), is_flood) for _ in range(much)]
                if rng.random() < 0.005:  # disconnects at once, so that the outcome is unknown
                    self._begin(writer, sends)
                    await asyncio.sleep(0)
                    break
                await self._ask(reader, writer, sends)
                await asyncio.sleep(rng.uniform(0, 0.06))
        finally:
            writer.transport.abort()

    def _sent(self, edge: TextEdge, connection: int, tag: bytes, is_large: bool = False) -> Sent:
        rng = self._rng
        text = b"%b:%d" % (self._name.encode(), next(self._numbers))
        if is_large or rng.random() < 0.1:
            text += b" " + b"." * rng.randrange(LARGE)
        return Sent(text, tag, self._world.stores[edge.name], connection, 0.0)

    def _begin(self, writer: asyncio.StreamWriter, sends: list[Sent]) -> None:
        if writer.transport.is_closing():
            raise ConnectionResetError
        now = time.monotonic()
        for send in sends:
            send.began = now
        self._world.history.sent += sends
        writer.write(b"".join(b"SEND %b %b\n" % (send.tag, send.text) for send in sends))

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sends: list[Sent]
    ) -> None:
        self._begin(writer, sends)
        for send in sends:
            try:
                async with asyncio.timeout(ANSWER_S):
                    line = await reader.readuntil(b"\n")
            except TimeoutError:
                raise Silent(f"{send} was not answered for {ANSWER_S:g} s") from None
            send.answered, send.ok = time.monotonic(), line == b"OK\n"
            if not send.ok and not line.startswith(b"ERROR "):
                raise Silent(f"{send} was answered {line!r}")


class Subscriber:
    """A subscriber that resubscribes whenever its connection ends; each connection is one life."""

    def __init__(
        self, world: World, name: str, edges: list[TextEdge], patterns: tuple[bytes, ...], slow: bool
    ):
        self._world = world
        self._name = name
        self._edges = edges
        self._patterns = patterns
        self._slow = slow
        self._rng = random.Random(f"{world.seed} {name}")

    async def play(self) -> None:
        """Subscribe and listen until cancelled."""
        while True:
            edge = self._rng.choice(self._edges)
            life = Life(self._name, self._world.stores[edge.name], edge.name)
            try:
                await self._live(life, edge)
            except GONE:
                life.ended = time.monotonic()
            await asyncio.sleep(self._rng.uniform(0, 2 * PAUSE_S))

    async def _live(self, life: Life, edge: TextEdge) -> None:
        """Play one life. Raise one of GONE if the connection breaks."""
        reader, writer = await connect(edge, SMALL_BUFFER if self._slow else 0)
        try:
            self._world.history.lives.append(life)
            await self._subscribe(life, reader, writer)
            leaves_at = time.monotonic() + (self._rng.uniform(3, 15) if self._rng.random() < 0.2 else 1e6)
            while time.monotonic() < leaves_at or self._world.stopping.is_set():
                await self._read(life, reader)
            life.ended = time.monotonic()
        finally:
            writer.transport.abort()

    async def _subscribe(
        self, life: Life, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send the subscriptions, one by one or pipelined, and wait until all are confirmed."""
        now = time.monotonic()
        wanted = [Subscription(b"%d" % (7 * i), pattern, now) for i, pattern in enumerate(self._patterns)]
        waiting: deque[Subscription] = deque()
        at_once = self._rng.random() < 0.5
        for subscription in wanted:
            subscription.asked = time.monotonic()
            life.subscriptions.append(subscription)
            waiting.append(subscription)
            writer.write(b"SUBSCRIBE %b %b\n" % (subscription.identifier, subscription.pattern))
            while waiting and not at_once:
                await self._read(life, reader, waiting)
        while waiting:
            await self._read(life, reader, waiting)

    async def _read(
        self, life: Life, reader: asyncio.StreamReader, waiting: deque[Subscription] | None = None
    ) -> None:
        """Read one line. Raise ConnectionAbortedError if it refuses a subscription."""
        if self._slow and not self._world.hurrying.is_set() and self._rng.random() < PAUSES:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rng.uniform(0.5, 5.0)):
                    await self._world.hurrying.wait()
        line = (await reader.readuntil(b"\n"))[:-1]
        if line.startswith(b"MESSAGE "):
            _, identifier, text = line.split(b" ", 2)
            life.lines.append((identifier, text))
        elif waiting and line == b"OK":
            waiting.popleft().confirmed = time.monotonic()
        elif waiting and line.startswith(b"ERROR "):
            # store unavailable: unconfirmed subscriptions get nothing
            life.subscriptions = [s for s in life.subscriptions if s.confirmed is not None]
            raise ConnectionAbortedError
        else:
            life.odd.append(line)


def cast(world: World) -> tuple[list[Publisher], list[Subscriber]]:
    """Return one publisher per store and one for all; four subscribers per store, one of them slow."""
    at = [[edge for edge in world.edges if world.stores[edge.name] == store] for store in range(3)]
    publishers = [Publisher(world, f"p{i}", at[i] if i < 3 else world.edges) for i in range(PUBLISHERS)]
    subscribers = [
        Subscriber(world, f"s{i}", at[i % 3], PATTERNS[i % len(PATTERNS)], slow=i // 3 == 3)
        for i in range(SUBSCRIBERS)
    ]
    return publishers, subscribers
