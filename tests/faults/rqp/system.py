"""One of the two systems: its store and queues, inspected directly, without the edges."""

from __future__ import annotations

from pathlib import Path

from services.store import DeadLetters, Delivery, Queue, QueueSpec, Store, StoreError
from services.store.model import records
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Timing
from tests.faults.rqp.edges import STORE
from tests.faults.rqp.history import Arrival, Book, Letter
from tests.faults.rqp.plan import WAYS, Way
from tests.servers import Server

DOMAIN = "main"
BACKLOG = 500  # length limit of transmission queues, short enough to drain in time on slow machines
AT_ONCE = 1000  # messages per take


class System:
    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.server = Server("valkey", directory / f"store{number}")
        # edges sweep any session that is silent for their time-out, this one too
        self._store = Store(self.server.url, "faults", timing=Timing(beat_s=STORE["heartbeat_s"]))
        self._queues: dict[Way, Queue] = {}

    async def open(self) -> None:
        """Initialise the running store and declare its queues."""
        await self._store.initialise()
        for way in WAYS:
            here = way.source == self.number
            spec = QueueSpec.model_validate(_leaving(way) if here else _arriving(way))
            name = f"{way}-{'out' if here else 'in'}"
            self._queues[way], _ = await self._store.catalogue.declare(name, spec, "faults")

    async def close(self) -> None:
        await self._store.close()

    def client(self) -> AsyncClient:
        return AsyncClient(self._store.open_domain(DOMAIN).pipe)

    def queue(self, way: Way) -> Queue:
        return self._queues[way]

    async def has_sent_all(self) -> bool:
        """Return whether the transmission queues are empty; False if the store is unavailable."""
        try:
            for way, queue in self._queues.items():
                stats = await self._store.listing.stats(queue)
                if way.source == self.number and stats["ready"] + stats["in_flight"]:
                    return False
        except StoreError:
            return False
        return True

    async def arrived(self) -> int:
        """Return the number of ready messages in the destination queues."""
        return sum(
            [
                (await self._store.listing.stats(q))["ready"]
                for w, q in self._queues.items()
                if w.goal == self.number
            ]
        )

    async def read(self, books: dict[Way, Book]) -> None:
        """Take the messages that arrived and read all dead letters. Raise StoreError on failure."""
        await self._store.open_domain(DOMAIN).pipe.ready()
        client = self.client()
        for way, queue in self._queues.items():
            book = books[way]
            letters = DeadLetters(self._store.get_domain(DOMAIN), queue)
            book.letters += [Letter(letter.body, letter.reason) async for letter in letters.matching()]
            while way.goal == self.number and (got := await client.take(queue, AT_ONCE)):
                book.arrivals += [arrival for delivery in got for arrival in _arrivals(delivery)]
                await client.settle(got)


def _arrivals(delivery: Delivery) -> list[Arrival]:
    at = delivery.enqueued_ms / 1000
    return [Arrival(records.decode(record).body, at) for record in delivery.records()]


def _leaving(way: Way) -> dict[str, object]:
    number = "queueId" if way.protocol == "rqp-mca" else "key"
    remote = {"protocol": way.protocol, number: way.number, "reliable": way.is_certain}
    return {"remote": remote, "visibilityTimeout": "200ms", "maxLength": BACKLOG}


def _arriving(way: Way) -> dict[str, object]:
    binding = (
        {"rqpMca": {"queueId": way.number}} if way.protocol == "rqp-mca" else {"rqpCast": {"key": way.number}}
    )
    return {"bindings": binding}
