"""Generate traffic for pictures of the page: waves of messages of every protocol, and some failures."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial

import aiohttp

from protos.tmq import Dialect
from tests.console.page.demo_stack import HELD, KEY, OVER, DemoStack
from tests.console.page.scene import LONG_NUMBER, SCRIPT
from tests.live import until
from tests.pubsub.client import Client as TextClient
from tests.ring.clients.client import Client as RingClient
from tests.rqp.mca.client import Client as McaClient
from tests.tmq.client import Client as TmqClient

SEED = 20
WAVE_S = 240.0  # from one rush of orders to the next
TOKENS = {"ann": "admin", "bert": "operate", "wallboard": "view"}  # users of the console, with their roles
QUEUES: dict[str, dict[str, object]] = {
    "cast": {"bindings": {"rqpCast": {"key": KEY}}},
    "orders": {"messageTTL": "24h"},
    "orders/eu": {"maxLength": 50_000},
    "sensors": {"bindings": {"text": {"subscribe": ["plant.*"]}}},
    "returns": {"maxLength": 5, "overflow": "dead_letter_oldest", "messageTTL": "20s"},
    "quotes": {"messageTTL": "20s"},
    "labels": {"maxLength": 40},
    "invoices": {"bindings": {"rqpMca": {"queueId": OVER}}},
    "to invoices": {"remote": {"protocol": "rqp-mca", "peers": ["warehouse"], "queueId": OVER}},
    "repaired": {},
    "held": {"bindings": {"rqpMca": {"queueId": HELD}}},
    "archive": {"paused": True},
    "archive/2024": {},
}
PATTERNS = (b"plant.boiler*", b"plant.mill*", b"plant*")
SOME = {"body": "return.*[0-4][}]"}  # returned messages that are redriven
READINGS = (b"plant.boiler.temperature", b"plant.boiler.pressure", b"plant.mill.speed")


def settings() -> dict[str, str]:
    """Return settings with a token for each user; a token repeats the user's name, as it has a minimum length."""
    tokens = [
        {"name": name, "role": role, "sha256": hashlib.sha256(token(name).encode()).hexdigest()}
        for name, role in TOKENS.items()
    ]
    return {"PENSTOCK_CONSOLE__TOKENS": json.dumps(tokens)}


def token(name: str) -> str:
    return f"{name}-" * 4


class DemoTraffic:
    """Tasks that run in loops; `rush` is the current number of orders per second."""

    def __init__(self, place: DemoStack) -> None:
        self.place = place
        self.chance = random.Random(SEED)
        self.clients: list[TmqClient | RingClient | TextClient | McaClient] = []
        self._begun = time.monotonic()

    def rush(self) -> float:
        phase = math.tau * (time.monotonic() - self._begun) / WAVE_S
        return 45 - 30 * math.cos(phase) + self.chance.uniform(-6, 6)

    def order(self) -> bytes:
        number = self.chance.randrange(10**5)
        return b'{"order": %d, "lines": %d, "total": %d.50}' % (number, number % 7 + 1, number % 900)

    async def put_orders(self) -> None:
        client, queue = await self.at_tmq(b"orders")
        europe = await client.queue(b"orders/eu")
        while True:
            await client.put(queue, self.order())
            if self.chance.random() < 0.1:
                await client.put(europe, self.order())
            await asyncio.sleep(1 / self.rush())

    async def take_orders(self) -> None:
        """Consume orders, a little more slowly than they arrive at peak times."""
        client, queue = await self.at_tmq(b"orders")
        while True:
            found = await client.dnq(queue)
            await asyncio.sleep(0.016 if found is not None else 0.2)

    async def take_for_europe(self) -> None:
        """Consume all orders for Europe from time to time."""
        client, queue = await self.at_tmq(b"orders/eu")
        while True:
            await asyncio.sleep(100)
            while await client.dnq(queue) is not None:
                pass

    async def ask_for_quotes(self) -> None:
        """Publish quotes that expire, labels until their queue is full, and some returns."""
        client, quotes = await self.at_tmq(b"quotes")
        labels, returns = await client.queue(b"labels"), await client.queue(b"returns")
        while True:
            await client.put(quotes, b'{"quote": %d}' % self.chance.randrange(10**4))
            await client.enq(labels, b"label")
            if self.chance.random() < 0.2:
                await client.put(returns, b'{"return": "by TMQ", "of": %d}' % self.chance.randrange(10**5))
            await asyncio.sleep(self.chance.uniform(1, 5))

    async def send_back(self) -> None:
        client = await RingClient.connect(self.place.place("ring", "clients"))
        self.clients.append(client)
        bodies = [SCRIPT, LONG_NUMBER, bytes(range(64))]
        while True:
            body = bodies.pop(0) if bodies else b'{"return": %d}' % self.chance.randrange(10**5)
            await client.push(b"returns", body)
            await asyncio.sleep(self.chance.uniform(1, 6))

    async def measure(self) -> None:
        client = await TextClient.connect(self.place.place("pubsub", "text"))
        self.clients.append(client)
        while True:
            for tag in READINGS:
                await client.publish(tag, b"%.1f" % self.chance.uniform(20, 90))
            await asyncio.sleep(0.3)

    async def listen(self, pattern: bytes) -> None:
        client = await TextClient.connect(self.place.place("pubsub", "text"))
        self.clients.append(client)
        await client.subscribe(b"1", pattern)
        while True:
            await client.line()

    async def take_readings(self) -> None:
        """Consume readings by another protocol than they were published."""
        client, queue = await self.at_tmq(b"sensors")
        while True:
            if await client.dnq(queue) is None:
                await asyncio.sleep(1)

    async def invoice(self) -> None:
        """Publish invoices that are forwarded to the peer, which is this edge."""
        client, queue = await self.at_tmq(b"to invoices")
        while True:
            await client.put(queue, b'{"invoice": %d}' % self.chance.randrange(10**4))
            await asyncio.sleep(self.chance.uniform(2, 10))

    async def hold(self) -> None:
        client = await McaClient.connect(self.place.place("rqp", "mca"))
        self.clients.append(client)
        await client.request(HELD)

    async def at_tmq(self, name: bytes) -> tuple[TmqClient, bytes]:
        client = await TmqClient.connect(self.place.place("tmq", "document"), Dialect.DOCUMENT)
        self.clients.append(client)
        return client, await client.queue(name)


async def send_user_requests(place: DemoStack) -> None:
    """Send requests of users: jobs of each kind, and changes that are refused."""
    for who, method, path, body, status in (
        ("wallboard", "DELETE", "queues/archive", {}, 403),
        ("bert", "PUT", "queues/orders%2Feu", {"maxLength": 80_000}, 403),
        ("ann", "PUT", "queues/orders%2Feu", {"ackLevel": "memory", "maxLength": 80_000}, 200),
        ("ann", "DELETE", "queues/archive%2F2024", {}, 200),
        ("bert", "POST", "queues/quotes/dead/purge", {"filter": {"olderThan": "10m"}}, 202),
        ("bert", "POST", "queues/returns/dead/redrive", {"filter": SOME, "target": "repaired"}, 202),
    ):
        await place.ask(method, path, body, status, token(who))


async def redrive_slowly(place: DemoStack) -> None:
    """Start a redrive that runs while pictures are taken."""
    fields = {"all": True, "target": "repaired", "rate": 1}
    await place.ask("POST", "queues/quotes/dead/redrive", fields, 202, token("bert"))


async def wait_for_history(place: DemoStack) -> None:
    """Wait until the console has read all samples, so that the first plots are complete."""
    for path in ("history", "queues/orders/history"):
        await until(lambda path=path: _is_complete(place, path))  # type: ignore[misc]


async def _is_complete(place: DemoStack, path: str) -> bool:
    url = f"{place.address}api/v1/{path}?minutes=15"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token('wallboard')}"}) as session,
        session.get(url) as answer,
    ):
        return bool((await answer.json())["complete"])


@asynccontextmanager
async def run_traffic(place: DemoStack) -> AsyncIterator[None]:
    """Run all traffic; a failure ends it and is raised."""
    made = DemoTraffic(place)
    rounds: tuple[Callable[[], Coroutine[None, None, None]], ...] = (
        *(made.put_orders, made.take_orders, made.take_for_europe, made.ask_for_quotes, made.send_back),
        *(made.measure, made.take_readings, made.invoice, made.hold),
        *(partial(made.listen, pattern) for pattern in PATTERNS),
    )
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each()) for each in rounds]
            yield
            for task in tasks:
                task.cancel()
    finally:
        for client in made.clients:
            client.close()
