"""One fault run: five nodes in a ring and two stores under faults; then one ring must form with all messages stored.

Each node has its own machine on an isolated network; stores and clients are at the bridge.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.store import StoreError
from tests.faults.disturbance import Disturbance, Fault, Target
from tests.faults.episodes import Step
from tests.faults.ring.actors import Puller, Pusher
from tests.faults.ring.history import History
from tests.faults.ring.nodes import RingNode, is_one_ring, store_url
from tests.faults.ring.plan import NODES, OUTBOX, OUTBOX_STORE, PULLS, SCENE, STORES, SURE, WAYS
from tests.faults.ring.system import System
from tests.faults.waiting import Stuck, eventually, together
from tests.machines import Machine, machines

SECONDS = 45.0
RING_S = 60.0  # longest time to one ring with one leader, once everything runs again
REST_S = 60.0  # longest time until no message is in transit
CALM = 20  # messages per way, after the faults
QUIET_S = 1.5  # without arrivals for this long, nothing is in transit
SUPERVISE_S = 0.2


@dataclass(slots=True, repr=False)
class Outcome:
    """Everything that the verdict on a run needs."""

    seed: int
    history: History
    faults: list[Fault]
    kills: int = 0
    seconds: float = 0.0
    closed_s: float | None = None  # time from the last start to the first ring
    rings_s: list[float] = field(default_factory=list)  # times from an episode to one ring again
    healed_s: float | None = None  # time from the last episode to one ring again
    gave_up: int = 0  # exits of nodes without a network
    is_read: bool = False  # remaining messages have been read
    failures: list[str] = field(default_factory=list)  # steps that could not be completed
    logged: list[str] = field(default_factory=list)  # errors logged by nodes


class Run:
    def __init__(self, seed: int, directory: Path, seconds: float = SECONDS) -> None:
        self._seed = seed
        self._directory = directory
        self._seconds = seconds
        self._rng = random.Random(f"{seed} whether a ring is waited for")
        self._systems = [System(number, directory) for number in range(STORES)]
        self._nodes: dict[str, RingNode] = {}
        self._actors: list[Pusher | Puller] = []
        self._faults: list[Fault] = []
        self._disturbance: Disturbance | None = None
        self.outcome = Outcome(seed, History(), [])

    async def go(self) -> Outcome:
        """Carry out the run. Misbehaviour of servers is recorded in the outcome, not raised."""
        out = self.outcome
        with ExitStack() as stack:
            joined = stack.enter_context(machines(len(NODES)))
            try:
                await self._set_up(joined)
                await self._while_they_ask(self._disturb())
                await self._ask_in_peace()
            except Stuck as error:
                out.failures.append(str(error))
            finally:
                await self._end()
        return out

    async def _set_up(self, joined: list[Machine]) -> None:
        """Start stores, nodes and actors. Raise Stuck if no ring forms."""
        for system in self._systems:
            await asyncio.to_thread(system.server.start)
            await system.open()
        for machine, (name, store) in zip(joined, NODES.items(), strict=True):
            url = store_url(self._systems[store].server.port)
            self._nodes[name] = RingNode(name, self._directory / "nodes", url, machine)
        targets: dict[str, Target] = {
            **self._nodes,
            **{f"store {system.number}": system.server for system in self._systems},
            **{f"cable {name[5:]}": node.machine for name, node in self._nodes.items()},
        }
        self._disturbance = Disturbance(self._seed, SCENE, targets, self._resumed, time.time)
        self.outcome.faults = self._disturbance.faults
        for node in self._nodes.values():
            node.spawn()
        await self._are_ready()
        self.outcome.closed_s = await self._one_ring()
        history = self.outcome.history
        self._actors = [Pusher(self._seed, way, self._nodes[way.node], history) for way in WAYS]
        self._actors += [Puller(self._seed, way, self._nodes[way.node], history) for way in PULLS]

    # faults

    async def _disturb(self) -> None:
        """Inject the planned faults and those of SURE. Raise Stuck if the ring does not recover."""
        assert self._disturbance is not None
        await self._disturbance.go_on(self._seconds, lambda: False)
        for step in SURE:
            if not self._has_happened(step):
                await self._disturbance.episode((step,))
        self.outcome.healed_s = await self._one_ring()

    def _has_happened(self, step: Step) -> bool:
        """Return whether the step's fault has hit a target of the same type."""
        what = (step.target[:5], step.kind.value)
        return any((fault.target[:5], fault.kind) == what for fault in self.outcome.faults)

    async def _resumed(self) -> None:
        """Wait for ready nodes, and in half of the cases for one ring. Raise Stuck if they are not in time.

        The next episode thus also hits an incomplete ring.
        """
        await self._are_ready()
        if self._rng.random() < 0.5:
            self.outcome.rings_s.append(await self._one_ring())

    async def _are_ready(self) -> None:
        """Wait until every node is ready, which requires its store. Raise Stuck if one is not in time."""

        async def ready(node: RingNode) -> None:
            await eventually(lambda: asyncio.to_thread(node.is_ready), RING_S, f"{node.name} is ready")

        await together(*(ready(node) for node in self._nodes.values()))

    async def _one_ring(self) -> float:
        """Wait for one ring and return how many seconds that took. Raise Stuck if it takes too long."""
        began = time.monotonic()

        async def is_there() -> bool:
            nodes = self._nodes.values()
            return is_one_ring(await asyncio.gather(*(asyncio.to_thread(node.status) for node in nodes)))

        await eventually(is_there, RING_S, "there is one ring with one leader")
        return time.monotonic() - began

    async def _while_they_ask(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while the actors send requests. Raise Stuck if one does not end."""
        stopping = asyncio.Event()
        asking = [asyncio.create_task(actor.play(stopping)) for actor in self._actors]
        supervising = asyncio.create_task(self._supervise())
        try:
            await work
            stopping.set()
            await asyncio.wait_for(asyncio.gather(*asking), REST_S)
        except TimeoutError as error:
            raise Stuck("a client did not come to its end") from error
        finally:
            for task in (*asking, supervising):
                task.cancel()
            await asyncio.gather(*asking, supervising, return_exceptions=True)

    async def _supervise(self) -> None:
        while True:
            for node in self._nodes.values():
                node.supervise()
            await asyncio.sleep(SUPERVISE_S)

    # after the faults

    async def _ask_in_peace(self) -> None:
        """Push on all ways without faults, and fill the outbox. Raise Stuck if a push fails."""
        await self._at_rest()
        for actor in self._actors:
            for _ in range(CALM if isinstance(actor, Pusher) else 0):
                if not await actor.turn():
                    raise Stuck(f"{actor.way}: a push fails, though nothing happens any more")
            actor.close()
        await eventually(self._boards_show_one_ring, RING_S, "the stores' boards show one ring")
        history = self.outcome.history
        history.sent = [b"to whom it may concern %d" % number for number in range(CALM)]
        await self._systems[OUTBOX_STORE].put(OUTBOX, history.sent)
        await self._at_rest()

    async def _at_rest(self) -> None:
        """Wait until no message is in transit. Raise Stuck if it takes too long."""
        before = -1
        while (now := sum([await self._count(system) for system in self._systems])) != before:
            before = now
            await eventually(self._have_sent_all, REST_S, "nothing is on its way")
            await asyncio.sleep(QUIET_S)

    async def _boards_show_one_ring(self) -> bool:
        """Return whether `penstock ring status` on both stores shows one ring of all nodes."""
        found = [node for system in self._systems for node in await system.board()]
        return len(found) == len(self._nodes) and is_one_ring(found)

    async def _count(self, system: System) -> int:
        try:
            return await system.count()
        except StoreError as error:
            raise Stuck(f"store {system.number} cannot be asked: {error}") from error

    async def _have_sent_all(self) -> bool:
        names = {
            store: [self._nodes[name].ring_name for name in NODES if NODES[name] == store]
            for store in range(STORES)
        }
        return all([await system.is_at_rest(names[system.number]) for system in self._systems])

    async def _end(self) -> None:
        out = self.outcome
        for node in self._nodes.values():
            node.end()
        try:
            for system in self._systems:
                await system.read(out.history)
            out.is_read = not out.failures
        except (StoreError, OSError) as error:
            out.failures.append(f"what was left could not be read: {error!r}")
        for system in self._systems:
            await system.close()
            system.server.end()
        out.kills = 0 if self._disturbance is None else self._disturbance.kills
        out.seconds = time.time() - out.history.began
        out.gave_up = sum(node.gave_up for node in self._nodes.values())
        out.logged = [complaint for node in self._nodes.values() for complaint in node.complaints()]
