"""One fault run: two systems joined by RQP/MCA and RQP/cast under faults, then a wait until all messages have arrived.

Then only the stores are killed once more; finally twenty messages are put on each way without faults.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.store import StoreError
from tests.faults.disturbance import Disturbance, Fault, Target
from tests.faults.rqp.actors import Producer
from tests.faults.rqp.checker import AFTERWARDS_S
from tests.faults.rqp.edges import RqpEdge
from tests.faults.rqp.history import Alone, History
from tests.faults.rqp.plan import EDGES, SCENE, STORES_ALONE, SYSTEMS
from tests.faults.rqp.system import System
from tests.faults.waiting import Stuck, eventually, together
from tests.pubsub.cable import Cable
from tests.rqp.cast.net import Net
from tests.servers import free_port

SECONDS = 45.0
RESUME_S = 30.0  # longest time until all edges are ready, once everything runs again
HEAL_S = 60.0  # longest time from the last fault until all messages are sent
CALM = 20  # messages per way, after the faults
ACCOUNTED = {"rqp_message_lost"}  # logged errors that edges also count; the checker compares the counters
QUIET_S = 1.5  # without arrivals for this long, nothing is in transit


@dataclass(slots=True, repr=False)
class Outcome:
    """Everything that the verdict on a run needs."""

    seed: int
    history: History
    faults: list[Fault]
    kills: int = 0
    seconds: float = 0.0
    healed_s: float | None = None  # time from the last fault until all messages were sent
    alone: Alone | None = None
    failures: list[str] = field(default_factory=list)  # steps that could not be completed
    logged: list[str] = field(default_factory=list)  # errors logged by edges


class Run:
    def __init__(self, seed: int, directory: Path, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._systems = [System(number, directory) for number in range(SYSTEMS)]
        ports = {name: free_port() for name in EDGES}
        net = Net()
        self._edges = {
            name: RqpEdge(
                name,
                directory / "edges",
                self._systems[system].server.url,
                net,
                [port for other, port in ports.items() if EDGES[other] != system],
            )
            for name, system in EDGES.items()
        }
        self._cables = {name: Cable(edge.port, ports[name]) for name, edge in self._edges.items()}
        targets: dict[str, Target] = {
            **self._edges,
            **{f"store {system.number}": system.server for system in self._systems},
            **{f"cable {name[5:]}": cable for name, cable in self._cables.items()},
        }
        self._disturbance = Disturbance(seed, SCENE, targets, self._resumed, time.time)
        self._producers: list[Producer] = []
        self.outcome = Outcome(seed, History(), self._disturbance.faults)

    async def go(self) -> Outcome:
        """Carry out the run. Misbehaviour of servers is recorded in the outcome, not raised."""
        out = self.outcome
        try:
            await self._set_up()
            await self._while_they_put(self._disturbance.go_on(self._seconds, lambda: False))
            out.healed_s = await self._heal()
            await asyncio.sleep(AFTERWARDS_S)
            out.alone = await self._kill_stores_alone()
            await self._put_in_peace()
        except Stuck as error:
            out.failures.append(str(error))
        finally:
            await self._end()
        return out

    async def _set_up(self) -> None:
        for system in self._systems:
            await asyncio.to_thread(system.server.start)
            await system.open()
        for cable in self._cables.values():
            await cable.open()
        for edge in self._edges.values():
            edge.spawn()
        await self._resumed()
        for book in self.outcome.history.books.values():
            self._producers.append(Producer(self.outcome.seed, book, self._systems[book.way.source]))

    async def _resumed(self) -> None:
        """Wait until every edge is ready, which requires its store. Raise Stuck if one is not in time."""

        async def ready(edge: RqpEdge) -> None:
            what = f"{edge.name} is ready again"
            await eventually(lambda: asyncio.to_thread(edge.is_ready), RESUME_S, what)

        await together(*(ready(edge) for edge in self._edges.values()))

    async def _while_they_put(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work while the producers put messages. Raise Stuck if one does not end."""
        stopping = asyncio.Event()
        putting = [asyncio.create_task(producer.play(stopping)) for producer in self._producers]
        try:
            await work
            stopping.set()
            await asyncio.wait_for(asyncio.gather(*putting), RESUME_S)
        except TimeoutError as error:
            raise Stuck("a producer did not come to its end") from error
        finally:
            for task in putting:
                task.cancel()
            await asyncio.gather(*putting, return_exceptions=True)

    async def _kill_stores_alone(self) -> Alone:
        """Kill only the stores while messages are put, and compare the counters of lost messages. Raise Stuck."""
        before, began = await self._lost(), time.time()
        await self._while_they_put(self._disturbance.episode(STORES_ALONE))
        ended = time.time()
        await self._heal()
        await asyncio.sleep(AFTERWARDS_S)
        return Alone(began, ended, await self._lost() - before)

    async def _lost(self) -> Counter[str]:
        """Return the messages counted as lost by all edges, by protocol."""
        found = [await asyncio.to_thread(edge.lost) for edge in self._edges.values()]
        return sum(found, Counter())

    async def _heal(self) -> float:
        """Wait until all messages are sent and return how many seconds that took. Raise Stuck if it takes too long."""
        began = time.time()
        await eventually(self._have_sent_all, HEAL_S, "all has been sent")
        return time.time() - began

    async def _put_in_peace(self) -> None:
        """Put messages without faults; all must arrive once and in order. Raise Stuck if a put fails."""
        for producer in self._producers:
            for _ in range(CALM):
                if not await producer.put(1):
                    raise Stuck("a store does not store, though nothing happens any more")
        await self._heal()
        await self._nothing_arrives()

    async def _have_sent_all(self) -> bool:
        return all([await system.has_sent_all() for system in self._systems])

    async def _nothing_arrives(self) -> None:
        """Wait until no more messages arrive; uncertain ones may be in transit after their sender is done with them."""
        before = -1
        while (now := sum([await system.arrived() for system in self._systems])) != before:
            before = now
            await asyncio.sleep(QUIET_S)

    async def _end(self) -> None:
        out = self.outcome
        for edge in self._edges.values():
            edge.end()
        for cable in self._cables.values():
            await cable.close()
        try:
            for system in self._systems:
                await system.read(out.history.books)
        except (StoreError, OSError) as error:
            out.failures.append(f"what arrived could not be read: {error!r}")
        for system in self._systems:
            await system.close()
            system.server.end()
        out.kills = self._disturbance.kills
        out.seconds = time.time() - out.history.began
        out.logged = [complaint for edge in self._edges.values() for complaint in edge.complaints(ACCOUNTED)]
