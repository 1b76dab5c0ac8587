"""One fault run: three stores in a ring of links under faults, then recovery, and a dump of the logs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from redis.exceptions import RedisError

from services.store import StoreError
from tests.faults.disturbance import Disturbance, Fault, Target
from tests.faults.text.actors import SUBSCRIBERS, TAGS, Publisher, Silent, World, cast
from tests.faults.text.edges import TextEdge
from tests.faults.text.history import Book, History, Life, Sent
from tests.faults.text.plan import CABLES, EDGES, SCENE, STORES
from tests.faults.text.reader import Reader
from tests.faults.waiting import POLL_S, Stuck, eventually, together
from tests.pubsub.cable import Cable
from tests.servers import Server, free_port

SECONDS = 45.0
RESUME_S = 30.0  # longest time until each edge stores again, once everything runs again
HEAL_S = 30.0  # longest time from the last fault until all logs are equal and all subscribers are up to date
REACH_S = 10.0  # part of it: longest time for a message to reach all subscribers


@dataclass(slots=True, repr=False)
class Outcome:
    """Everything that the verdict on a run needs."""

    seed: int
    history: History
    faults: list[Fault]
    books: list[Book] = field(default_factory=list)
    kills: int = 0
    seconds: float = 0.0
    healed_s: float | None = None  # time from the last fault until recovery
    failures: list[str] = field(default_factory=list)  # steps that could not be completed
    logged: list[str] = field(default_factory=list)  # errors logged by edges


class Run:
    def __init__(self, seed: int, directory: Path, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._servers = [Server("valkey", directory / f"store{i}") for i in range(STORES)]
        ports = [free_port() for _ in range(STORES)]
        names = {
            name: TextEdge(
                name.replace(" ", "-"),
                directory / "edges",
                self._servers[store].url,
                [f"127.0.0.1:{ports[store]}"],
            )
            for name, store in EDGES.items()
        }
        self._cables = [
            Cable(names[f"edge {(i + 1) % STORES}"].link_port, port) for i, port in enumerate(ports)
        ]
        targets: dict[str, Target] = {
            **names,
            **{f"store {i}": server for i, server in enumerate(self._servers)},
            **dict(zip(CABLES, self._cables, strict=True)),
        }
        self._edges = list(names.values())
        self._world = World(seed, self._edges, {names[name].name: store for name, store in EDGES.items()})
        self._readers = [Reader(server.url) for server in self._servers]
        self._last = Publisher(self._world, "last", self._edges)
        self._disturbance = Disturbance(seed, SCENE, targets, self._resumed)
        self.outcome = Outcome(seed, self._world.history, self._disturbance.faults)

    async def go(self) -> Outcome:
        """Carry out the run. Misbehaviour of servers is recorded in the outcome, not raised."""
        out = self.outcome
        publishers, subscribers = cast(self._world)
        listening: list[asyncio.Task[None]] = []
        try:
            await self._set_up()
            listening = [asyncio.create_task(subscriber.play()) for subscriber in subscribers]
            await self._disturb(publishers)
            await self._heal()
        except (Stuck, Silent) as error:
            out.failures.append(str(error))
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            await self._end()
        return out

    async def _set_up(self) -> None:
        for server in self._servers:
            await asyncio.to_thread(server.start)
        for reader in self._readers:
            await reader.open()
        for cable in self._cables:
            await cable.open()
        for edge in self._edges:
            edge.spawn()
        # before the first SEND: a link carries only messages from after its setup (pubsub.md 4.3)
        await eventually(self._are_linked, RESUME_S, "all links are up")
        await self._resumed()

    async def _are_linked(self) -> bool:
        """Return whether each store follows both others."""
        followed = [await asyncio.to_thread(edge.sample, "penstock_links_following") for edge in self._edges]
        return sum(followed) == 2 * STORES

    async def _end(self) -> None:
        out = self.outcome
        with contextlib.suppress(StoreError, RedisError, OSError):
            out.books = [await reader.book() for reader in self._readers]
        for cable in self._cables:
            await cable.close()
        for edge in self._edges:
            edge.end()
        for reader in self._readers:
            await reader.close()
        for server in self._servers:
            server.end()
        out.kills = self._disturbance.kills
        out.seconds = time.monotonic() - self._world.history.began
        out.logged = [complaint for edge in self._edges for complaint in edge.complaints()]

    # disturbance

    async def _disturb(self, publishers: list[Publisher]) -> None:
        sending = [asyncio.create_task(publisher.play()) for publisher in publishers]
        faults = asyncio.create_task(self._faults())
        try:
            await asyncio.wait((faults, *sending), return_when=asyncio.FIRST_EXCEPTION)
            self._world.stopping.set()
            await asyncio.wait_for(asyncio.gather(faults, *sending), 2 * RESUME_S)
        except TimeoutError as error:
            raise Stuck("a publisher did not come to its end") from error
        finally:
            for task in (faults, *sending):
                task.cancel()
            await asyncio.gather(faults, *sending, return_exceptions=True)

    async def _faults(self) -> None:
        try:
            await self._disturbance.go_on(self._seconds, self._world.stopping.is_set)
        finally:
            self._world.stopping.set()

    async def _resumed(self) -> None:
        """Wait until every edge stores again. Raise Stuck if one does not."""

        async def stores(edge: TextEdge) -> None:
            what = f"{edge.name} stores again"
            await eventually(lambda: self._last.send_once(edge, (b"probe",)), RESUME_S, what)

        await together(*(stores(edge) for edge in self._edges))

    # after the faults

    async def _heal(self) -> None:
        """Wait until links, subscribers and stores have recovered. Raise Stuck if they do not."""
        began = time.monotonic()
        self._world.hurrying.set()
        await eventually(self._are_linked, HEAL_S, "all links are up again")
        try:
            await eventually(self._reach_all, HEAL_S, "every subscriber is there and has all")
        except Stuck as error:  # the checker reports which messages are missing
            self.outcome.failures.append(str(error))
        await eventually(self._hold_the_same, HEAL_S, "all stores hold the same")
        self.outcome.healed_s = time.monotonic() - began

    async def _reach_all(self) -> bool:
        """Send messages at every edge and return whether all subscribers got them for each matching subscription.

        A slow reader may not have noticed that it was disconnected; it will resubscribe, and a retry succeeds.
        """
        lives = self._lives()
        if len(lives) < SUBSCRIBERS or any(s.confirmed is None for life in lives for s in life.subscriptions):
            return False
        for edge in self._edges:
            if not await self._last.send_once(edge, TAGS):
                raise Stuck(f"{edge.name} does not store, though nothing happens any more")
        last = self._world.history.sent[-len(TAGS) * len(self._edges) :]
        end = time.monotonic() + REACH_S
        while time.monotonic() < end and lives == self._lives():
            if all(_has(life, last) for life in lives):
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _lives(self) -> list[Life]:
        """Return the lives that have not ended."""
        return [life for life in self._world.history.lives if life.ended is None]

    async def _hold_the_same(self) -> bool:
        first, *others = [await reader.held() for reader in self._readers]
        return first is not None and all(other == first for other in others)


def _has(life: Life, sent: list[Sent]) -> bool:
    """Return whether a life got all matching messages for each of its subscriptions."""
    got = set(life.lines)
    return all(
        (s.identifier, send.text) in got for s in life.subscriptions for send in sent if s.matches(send.tag)
    )
