"""Two systems, of which every part is killed at random: what was put in here stands there (rqp_mca.md 2.1, 3.3)."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from services.store import Queue, QueueSpec, Store
from services.store.model.errors import StoreError
from services.store.pipeline.async_client import Asker
from services.store.pipeline.domain import Timing
from tests.live import until
from tests.rqp.conftest import NewServer
from tests.rqp.program import EdgeProgram
from tests.servers import Server, free_port

FAULTS = 16
PAUSE_S = 0.4  # between two faults
RUN = 20  # messages in one call
HEALED_S = 60.0
TIMES = {"availability_timeout_s": 0.5, "request_timeout_s": 0.5, "data_timeout_s": 1.0, "max_pause_s": 0.5}
QUICK_STORE = {
    "session_timeout_s": 1.0,
    "heartbeat_s": 0.2,
    "sweep_s": 0.2,
    "patience_s": 0.5,
    "reply_timeout_s": 0.5,
    "call_deadline_s": 1.0,
}
OUTBOX = {"lease_s": 0.9, "renew_s": 0.2, "look_s": 0.5}


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={seed} repeats this")
    return random.Random(seed)


class Systems:
    """`near` has two edges that send, `far` two that receive, each pair on a store of its own."""

    def __init__(self, near: Server, far: Server, folder: Path) -> None:
        self.near, self.far = near, far
        timing = Timing(beat_s=QUICK_STORE["heartbeat_s"])  # edges sweep whoever is silent for their time-out
        self.near_tools, self.far_tools = (Store(each.url, "test", timing=timing) for each in (near, far))
        self.put: list[bytes] = []  # stored: asked for, and answered
        self.queues: tuple[Queue, Queue]
        self.stood_still = False  # the store of the transmission queue, for longer than its ownership
        ports = [free_port(), free_port()]
        peers = {f"far{port}": {"addresses": [f"127.0.0.1:{port}"], "window": 50} for port in ports}
        own = {"store": QUICK_STORE, "outbox": OUTBOX, "request_timeout_s": 3.0}
        sends: dict[str, Any] = {**own, "mca": {**TIMES, "peers": peers}}
        # an edge that is killed frees nothing: what it had assigned runs out
        answers = {**TIMES, "reservation_ttl_s": 1.0}
        receives = [{**own, "mca": answers, "listeners": {"mca": {"port": port}}} for port in ports]
        self._makes = [
            *(lambda: EdgeProgram(near.url, folder, sends) for _ in range(2)),
            *((lambda told=told: EdgeProgram(far.url, folder, told)) for told in receives),
        ]
        self.programs: list[EdgeProgram] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Systems:
        remote = {"protocol": "rqp-mca", "queueId": 7}
        spec = {"remote": remote, "visibilityTimeout": "200ms"}
        away, _ = await self.near_tools.catalogue.declare("away", QueueSpec.model_validate(spec), "test")
        bindings = {"bindings": {"rqpMca": {"queueId": 7}}}
        arrived, _ = await self.far_tools.catalogue.declare(
            "arrived", QueueSpec.model_validate(bindings), "test"
        )
        self.queues = away, arrived
        for make in self._makes:
            self.programs.append(await self._stack.enter_async_context(make()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self.near_tools.close()
        await self.far_tools.close()

    async def kill_edge(self, number: int) -> None:
        await self.programs[number].kill()
        self.programs[number] = await self._stack.enter_async_context(self._makes[number]())

    async def kill_store(self, server: Server) -> None:
        server.kill9()
        await asyncio.to_thread(server.restart)

    async def stop_store(self, server: Server) -> None:
        self.stood_still = self.stood_still or server is self.near
        server.stop()
        await asyncio.sleep(1.0)  # longer than a lease
        server.cont()

    async def keep_putting(self) -> None:
        """What is not answered may be stored or not: it is not put in again, nor counted."""
        asker = Asker(self.near_tools.domain("main").pipe)
        number = 0
        while True:
            bodies = [b"%d" % (number + index) for index in range(RUN)]
            number += RUN
            try:
                records = [len(body).to_bytes(4, "big") + body for body in bodies]
                refused = {index for index, _ in await asker.publish(self.queues[0], records, "test")}
            except StoreError:
                await asyncio.sleep(0.05)
            else:
                self.put += [body for index, body in enumerate(bodies) if index not in refused]
            await asyncio.sleep(0.01)

    async def is_done(self) -> bool:
        stats = await self.near_tools.listing.stats(self.queues[0])
        return bool(stats["ready"] == 0 and stats["in_flight"] == 0)

    async def arrived(self) -> list[bytes]:
        """All of it, taken out."""
        found: list[bytes] = []
        domain = self.far_tools.domain("main")
        await domain.pipe.ready()
        asker = Asker(domain.pipe)
        while got := await asker.take(self.queues[1], 1000):
            found += [record[4:] for delivery in got for record in delivery.records()]
            await asker.settle(got)
        return found


def early(first_times: list[bytes]) -> list[tuple[int, int]]:
    """Those that came before a smaller one: its number, and the smaller one's."""
    numbers = list(map(int, first_times))
    return [(before, after) for before, after in pairwise(numbers) if before > after]


async def test_nothing_is_lost(new_server: NewServer, tmp_path: Path, chance: random.Random) -> None:
    """At least once, whoever is killed or stands still meanwhile.

    For the first time they come in order, unless the store of the transmission queue stood still for longer than a
    lease: then an owner of before may still have asked for messages, and gives them back when others are on their way.
    """
    async with Systems(await new_server(), await new_server(), tmp_path) as systems:
        faults: list[Callable[[], Awaitable[None]]] = [
            *((lambda number=number: systems.kill_edge(number)) for number in range(4)),
            *((lambda server=server: systems.kill_store(server)) for server in (systems.near, systems.far)),
            *((lambda server=server: systems.stop_store(server)) for server in (systems.near, systems.far)),
        ]
        putting = asyncio.create_task(systems.keep_putting())
        for _ in range(FAULTS):
            await asyncio.sleep(PAUSE_S)
            await chance.choice(faults)()
        await asyncio.sleep(PAUSE_S)
        putting.cancel()
        await asyncio.wait((putting,))
        assert len(systems.put) > RUN
        await until(systems.is_done, HEALED_S)
        arrived = await systems.arrived()
        first_times = list(dict.fromkeys(arrived))
        assert set(systems.put) <= set(arrived)
        assert systems.stood_still or early(first_times) == []
        assert all(body.isdigit() for body in arrived)
