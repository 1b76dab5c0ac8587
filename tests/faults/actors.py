"""Actors that use the queues during a run: producers, consumers and movers, each with many short connections.

Every choice comes from the seed; which request coincides with which fault does not.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from protos.tmq import Dialect, Operation
from tests.faults.client import Client, Gone
from tests.faults.history import History, Request

ORDERS, BILLS, SMALL, POISON, SOLO, PROBE = "orders", "bills", "small", "poison", "solo", "probe"
SHARED = (ORDERS, BILLS, SMALL, POISON)  # SOLO has a single consumer, PROBE only the run's probes
ALL = (*SHARED, SOLO, PROBE)
SLOW_S = 3.0
PACE_S = 0.02  # delay before an actor retries what failed
# body sizes in octets; more than 4 KiB fill an entry
SIZES = (40,) * 90 + (600,) * 6 + (5_000,) * 2 + (30_000,)
# numbers of ENQs sent at once; one call to the store carries at most 1,000
RUN = (*(2, 5, 20, 200) * 10, 3_000)


@dataclass(slots=True)
class World:
    """State shared by all actors."""

    seed: int
    ports: dict[tuple[int, Dialect], int]
    history: History
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: int = 0

    def body(self, rng: random.Random, queue: str) -> bytes:
        """Return a body that is unique within the run."""
        self.numbers += 1
        head = f"{queue} {self.numbers} ".encode()
        return head.ljust(max(len(head), rng.choice(SIZES)), b".")

    async def connect(self, actor: str, rng: random.Random) -> Client:
        """Connect to a random port of a random edge. Raise Gone if that fails."""
        (edge, dialect), port = rng.choice(list(self.ports.items()))
        return await Client.connect(self.history.connection(actor, edge), port, dialect)


def enq(queue: str, body: bytes) -> Request:
    return Request(Operation.ENQ, queue, body)


def dnq(queue: str, count: int = 1) -> list[Request]:
    return [Request(Operation.DNQ, queue) for _ in range(count)]


Habit = Callable[["Life"], Awaitable[bool]]  # one action; returns False if it achieved nothing


@dataclass(slots=True)
class Life:
    """One connection of an actor."""

    world: World
    client: Client
    rng: random.Random
    role: Role

    def queue(self) -> str:
        return self.rng.choice(self.role.queues)

    def some(self, *queues: str) -> list[Request]:
        """Return a few ENQs for each queue, in random order."""
        made = [q for q in queues for _ in range(self.rng.randint(1, 6))]
        self.rng.shuffle(made)
        return [enq(queue, self.world.body(self.rng, queue)) for queue in made]

    async def work(self) -> None:
        """Hold leased messages for a while if the role is slow, so that leases outlast faults of all kinds."""
        if self.role.is_slow:
            await asyncio.sleep(self.rng.uniform(0, SLOW_S))

    async def end_transaction(self, rest: list[Request]) -> None:
        """Send the remaining requests, one by one or pipelined; then commit, abort or disconnect."""
        how = self.rng.choices(("end", "abort", "unheard", "vanish"), (75, 14, 5, 6))[0]
        end = [Request(Operation.TA if how == "abort" else Operation.TE)] if how != "vanish" else []
        if how == "unheard":
            self.client.send(*rest, *end)
            self.client.leave()
            raise Gone
        if self.rng.random() < 0.5:
            await self.client.ask(*rest, *end)
        else:
            for request in (*rest, *end):
                await self.client.ask(request)
        if how == "vanish":
            self.client.reset()
            raise Gone

    async def begin_transaction(self) -> bool:
        start = Request(Operation.TS)
        await self.client.ask(start)
        return start.ok

    async def end(self) -> None:
        """End the connection: in order, by a reset, or with a request in flight."""
        how = self.rng.choices(("finish", "reset", "leave"), (40, 30, 30))[0]
        if how == "finish":
            await self.client.finish()
        elif how == "reset":
            self.client.reset()
        else:
            queue = self.queue()
            last = dnq(queue) if self.role.leaves_a_dnq else [enq(queue, self.world.body(self.rng, queue))]
            self.client.send(*last)
            self.client.leave()


# producers


async def put_one(life: Life) -> bool:
    queue = life.queue()
    request = enq(queue, life.world.body(life.rng, queue))
    await life.client.ask(request)
    return request.ok


async def put_run(life: Life) -> bool:
    """Pipeline ENQs for one queue, or for two queues alternately."""
    queues = life.rng.choices(life.role.queues, k=life.rng.choice((1, 1, 2)))
    chosen = [life.rng.choice(queues) for _ in range(life.rng.choice(RUN))]
    requests = [enq(queue, life.world.body(life.rng, queue)) for queue in chosen]
    if life.rng.random() < 0.05:
        life.client.send(*requests)
        life.client.reset()
        raise Gone
    await life.client.ask(*requests)
    return any(request.ok for request in requests)


async def put_transaction(life: Life) -> bool:
    """Put messages into two queues in one transaction."""
    if not await life.begin_transaction():
        return False
    await life.end_transaction(life.some(life.queue(), life.queue()))
    return True


# consumers


async def take_one(life: Life) -> bool:
    """Take one message outside a transaction; the next request settles it (tmq.md 6.1)."""
    (request,) = dnq(life.queue())
    await life.client.ask(request)
    await life.work()
    return request.ok


async def take_transaction(life: Life) -> bool:
    if not await life.begin_transaction():
        return False
    taken = dnq(life.queue(), life.rng.randint(1, 12))
    await life.client.ask(*taken)
    await life.work()
    await life.end_transaction([])
    return taken[0].ok


async def transfer(life: Life) -> bool:
    """Move messages between queues in one transaction: the takes are settled only if the puts are stored."""
    if not await life.begin_transaction():
        return False
    source, goal = life.queue(), life.queue()
    taken = dnq(source, life.rng.randint(1, 8))
    await life.client.ask(*taken)
    await life.work()
    number = sum(request.ok for request in taken)
    await life.end_transaction([enq(goal, life.world.body(life.rng, goal)) for _ in range(number)])
    return number > 0


async def select(life: Life) -> bool:
    request = Request(Operation.SELECT, life.queue())
    await life.client.ask(request)
    return request.ok


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    queues: tuple[str, ...]
    habits: tuple[Habit, ...]
    likes: tuple[int, ...]  # weights of the habits
    leaves_a_dnq: bool = False  # its last request, sent without waiting for the answer, is a DNQ
    is_slow: bool = False  # holds messages for a while before it settles them


PRODUCER = Role("producer", SHARED, (put_one, put_run, put_transaction, select), (50, 20, 30, 2))
CONSUMER = Role("consumer", SHARED, (take_one, take_transaction, select), (70, 30, 2), True)
MOVER = Role("mover", SHARED, (transfer, take_one, put_one), (80, 15, 5))
SOLO_PRODUCER = Role("solo producer", (SOLO,), (put_one, put_run, put_transaction), (50, 20, 30))
SOLO_CONSUMER = Role("solo consumer", (SOLO,), (take_one, take_transaction), (50, 50))
SLOW_MOVER = Role("slow mover", SHARED, (transfer, take_one), (80, 20), is_slow=True)
CAST = (*(PRODUCER,) * 3, *(CONSUMER,) * 3, *(MOVER,) * 2, *(SLOW_MOVER,) * 3, SOLO_PRODUCER, SOLO_CONSUMER)


class Actor:
    """One role, played until the run stops."""

    def __init__(self, world: World, role: Role, number: int) -> None:
        self._world = world
        self._role = role
        self._name = f"{role.name} {number}"
        self._rng = random.Random(f"{world.seed} {self._name}")

    async def play(self) -> None:
        while not self._world.stopping.is_set():
            try:
                client = await self._world.connect(self._name, self._rng)
            except Gone:
                await asyncio.sleep(PACE_S)
                continue
            try:
                await self._use(client)
            except Gone:
                await asyncio.sleep(PACE_S)
            finally:
                client.drop()

    async def _use(self, client: Client) -> None:
        role = self._role
        if not await client.open(*role.queues):
            await asyncio.sleep(PACE_S)
            return
        life = Life(self._world, client, self._rng, role)
        await self._live(life)
        await life.end()

    async def _live(self, life: Life) -> None:
        for _ in range(self._rng.choice((1, 5, 20, 100))):
            if self._world.stopping.is_set():
                return
            habit = self._rng.choices(self._role.habits, self._role.likes)[0]
            if not await habit(life):
                await asyncio.sleep(PACE_S)
