"""One fault run: a store, two edges and actors under faults; then a quiet period, a drain and the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from redis.exceptions import ResponseError

from protos.tmq import Dialect, Operation
from services.store import DeadLetter, DeadLetters, Queue, QueueSpec, Store
from tests.faults.actors import ALL, CAST, POISON, PROBE, SMALL, Actor, World, dnq, enq
from tests.faults.checker import QueueCounts
from tests.faults.client import Client, Gone, Misbehaved
from tests.faults.edges import EdgeServer
from tests.faults.history import Connection, Fault, History, Request, Trouble
from tests.faults.plan import EDGES, KILLING, STORE, Episode, Kind, Step, episodes
from tests.faults.waiting import Stuck, eventually, together
from tests.servers import Server

SECONDS = 60.0
KILLS = 20
RESUME_S = 20.0  # longest time until each edge serves, once everything runs again
TERM_S = 20.0  # longest drain of an edge while the store is available
LEASES_S = 40.0  # longest time until no lease is left: dead edges swept, messages returned
CALM_S = 1.5  # longest pause between two episodes
# the longer one lets the store process a request after the client's time-out
CALL_DEADLINES_S = (3.0, 8.0)
DRAIN_RUN = 200  # DNQs pipelined at once
# the default of 30 s would delay the return of dead edges' leases
COMMON: dict[str, Any] = {"visibility_timeout": "1s"}
SPECS: dict[str, dict[str, Any]] = {SMALL: {"max_length": 60}, POISON: {"max_deliveries": 3}}


@dataclass(slots=True, repr=False)
class Outcome:
    """Everything that the verdict on a run needs."""

    seed: int
    program: str
    history: History
    faults: list[Fault] = field(default_factory=list)
    kills: int = 0
    seconds: float = 0.0
    troubles: list[Trouble] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # steps that could not be completed
    dead: dict[str, list[DeadLetter]] = field(default_factory=dict)
    counts: dict[str, QueueCounts] = field(default_factory=dict)
    # differences from a recount of the streams
    wrong_counts: dict[str, dict[str, int]] = field(default_factory=dict)
    # dead letters that were delivered after the redrive
    redriven: dict[str, list[bytes]] = field(default_factory=dict)
    drain: Connection | None = None


class Run:
    def __init__(self, seed: int, directory: Path, seconds: float = SECONDS, kills: int = KILLS) -> None:
        program = "valkey" if seed % 2 else "redis"
        self._server = Server(program, directory / "store")
        self._rng = random.Random(f"{seed} the run itself")
        deadline_s = self._rng.choice(CALL_DEADLINES_S)
        edges, url = directory / "edges", self._server.url
        self._edges = [EdgeServer(index, edges, url, deadline_s) for index in range(EDGES)]
        ports = {(edge.index, dialect): port for edge in self._edges for dialect, port in edge.ports.items()}
        self._world = World(seed, ports, History())
        self._seconds, self._kills = seconds, kills
        self._store = Store(self._server.url, "faults")
        self._queues: dict[str, Queue] = {}
        self.outcome = Outcome(seed, program, self._world.history)

    async def go(self) -> Outcome:
        """Carry out the run. Misbehaviour of servers is recorded in the outcome, not raised."""
        out = self.outcome
        try:
            await self._set_up()
            await self._disturb()
            await self._bring_in()
        except (Stuck, Gone, Misbehaved) as error:
            out.failures.append(str(error) or type(error).__name__)
        finally:
            await self._store.close()
            for edge in self._edges:
                edge.end()
            self._server.end()
            out.seconds = time.monotonic() - self._world.history.began
            out.troubles = self._read_logs()
        return out

    async def _set_up(self) -> None:
        self._server.start()
        await self._store.initialise()
        for name in ALL:
            spec = QueueSpec(**COMMON, **SPECS.get(name, {}))
            self._queues[name], _ = await self._store.catalogue.declare(name, spec, "test")
        for edge in self._edges:
            edge.spawn()
        await self._resumed()

    # disturbance

    async def _disturb(self) -> None:
        actors = [
            asyncio.create_task(Actor(self._world, role, number).play()) for number, role in enumerate(CAST)
        ]
        faults = asyncio.create_task(self._faults())
        try:
            await asyncio.wait((faults, *actors), return_when=asyncio.FIRST_EXCEPTION)
            self._world.stopping.set()
            await asyncio.wait_for(asyncio.gather(faults, *actors), 2 * LEASES_S)
        except TimeoutError as error:
            raise Stuck("an actor did not come to its end") from error
        finally:
            for task in (faults, *actors):
                task.cancel()
            await asyncio.gather(faults, *actors, return_exceptions=True)

    async def _faults(self) -> None:
        end = time.monotonic() + self._seconds
        plan = episodes(self.outcome.seed)
        try:
            while not self._world.stopping.is_set() and (
                time.monotonic() < end or self.outcome.kills < self._kills
            ):
                await asyncio.sleep(self._rng.uniform(0, CALM_S))
                await self._episode(next(plan))
        finally:
            self._world.stopping.set()

    async def _episode(self, episode: Episode) -> None:
        first = len(self.outcome.faults)
        targets = dict.fromkeys(step.target for step in episode)
        lanes = [[step for step in episode if step.target == target] for target in targets]
        await together(*(self._lane(lane) for lane in lanes))
        await self._resumed()
        now = time.monotonic()
        for fault in self.outcome.faults[first:]:
            fault.resumed = now

    async def _lane(self, steps: list[Step]) -> None:
        for step in steps:
            await asyncio.sleep(step.after_s)
            fault = Fault(step.target, step.kind.value, time.monotonic())
            self.outcome.faults.append(fault)
            self.outcome.kills += step.kind in KILLING
            await self._do(step)
            fault.ended = time.monotonic()

    async def _do(self, step: Step) -> None:
        process = self._server if step.target == STORE else self._edges[int(step.target.split()[1])]
        match step.kind:
            case Kind.KILL:
                process.kill9()
                await asyncio.sleep(step.lasts_s)
                process.spawn()
            case Kind.STOP:
                process.stop()
                await asyncio.sleep(step.lasts_s)
                process.cont()
            case Kind.FREEZE:
                process.stop()
                await asyncio.sleep(step.lasts_s)
                process.kill9()
                process.spawn()
            case Kind.TERM:
                await self._terminate(process)
                await asyncio.sleep(step.lasts_s)
                process.spawn()
            case Kind.REWRITE:
                with contextlib.suppress(ResponseError):  # a rewrite is already running
                    self._server.call("BGREWRITEAOF")

    async def _terminate(self, process: Server | EdgeServer) -> None:
        if isinstance(process, Server):
            process.terminate()
            return
        process.terminate()

        async def ended() -> bool:
            return process.has_ended

        await eventually(ended, TERM_S, f"edge {process.index} ends after SIGTERM")

    async def _resumed(self) -> None:
        """Wait until every edge accepts and delivers messages again. Raise Stuck if one does not."""

        async def serves(edge: EdgeServer) -> None:
            await eventually(lambda: self._probe(edge), RESUME_S, f"edge {edge.index} serves again")

        await together(*(serves(edge) for edge in self._edges))

    async def _probe(self, edge: EdgeServer) -> bool:
        record = self._world.history.connection("probe", edge.index)
        put, (take,) = enq(PROBE, self._world.body(self._rng, PROBE)), dnq(PROBE)
        try:
            client = await Client.connect(record, edge.ports[Dialect.DOCUMENT], Dialect.DOCUMENT)
            if await client.open(PROBE):
                await client.ask(put)
                await client.ask(take)
            client.reset()
        except Gone:
            return False
        return put.ok and take.ok

    # drain and redrive

    async def _bring_in(self) -> None:
        out = self.outcome
        await self._nothing_on_lease()
        out.drain = await self._drain(self._world, ALL)
        await self._nothing_on_lease()
        for name, queue in self._queues.items():
            out.dead[name] = [letter async for letter in self._letters(queue).matching()]
            stats = await self._store.listing.stats(queue)
            out.counts[name] = QueueCounts(
                *(stats[key] for key in ("added", "acked", "dead", "ready", "in_flight"))
            )
            out.wrong_counts[name] = await self._recount(queue)
        await self._bring_back()

    async def _nothing_on_lease(self) -> None:
        for name, queue in self._queues.items():
            await eventually(partial(self._is_free, queue), LEASES_S, f"no lease left in {name}")

    async def _is_free(self, queue: Queue) -> bool:
        return bool((await self._store.listing.stats(queue))["in_flight"] == 0)

    async def _recount(self, queue: Queue) -> dict[str, int]:
        """Return by how much the counters differ from the streams."""
        domain = self._store.get_domain(queue.domain)
        for _ in count():
            if (wrong := await domain.tidy(queue)) is not None:
                return {key: value for key, value in wrong.items() if value}
        raise AssertionError("unreachable")

    async def _drain(self, world: World, queues: tuple[str, ...]) -> Connection:
        """Take all messages with one client, in transactions. Raise Gone or Stuck on failure."""
        edge = self._edges[0]
        record = world.history.connection("drain", edge.index)
        client = await Client.connect(record, edge.ports[Dialect.DOCUMENT], Dialect.DOCUMENT)
        if not await client.open(*queues):
            raise Stuck("the queues could not be opened for the drain")
        for queue in queues:
            while await self._drain_once(client, queue):
                pass
        await client.finish()
        return record

    async def _drain_once(self, client: Client, queue: str) -> bool:
        start, takes, end = Request(Operation.TS), dnq(queue, DRAIN_RUN), Request(Operation.TE)
        await client.ask(start)
        await client.ask(*takes)
        await client.ask(end)
        if not end.ok:
            raise Stuck(f"the drain of {queue} was refused")
        return takes[-1].ok

    def _letters(self, queue: Queue) -> DeadLetters:
        return DeadLetters(self._store.get_domain(queue.domain), queue)

    async def _bring_back(self) -> None:
        """Redrive all dead letters, drain the queues and record the delivered bodies."""
        brought = World(self.outcome.seed, {}, History())
        for queue in self._queues.values():
            letters = self._letters(queue)
            while ids := [letter.id async for letter in letters.matching()]:
                await letters.redrive(ids)
        record = await self._drain(brought, ALL)
        for request in record.requests:
            if request.ok and request.body:
                self.outcome.redriven.setdefault(request.queue, []).append(request.body)

    def _read_logs(self) -> list[Trouble]:
        """Return logged errors of edges, which no run may cause, and lost sessions, which explain what clients saw."""
        to_monotonic = time.monotonic() - time.time()
        return [
            Trouble(edge.index, event["at"] + to_monotonic, event.get("action", ""), str(event))
            for edge in self._edges
            for event in edge.log()
            if event["level"] in ("ERROR", "CRITICAL") or event.get("action") == "session_lost"
        ]
