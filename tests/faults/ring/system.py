"""One of the two stores with its queues, inspected directly, without the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from services.store import DeadLetters, Delivery, Queue, QueueSpec, Store, StoreError
from services.store.model import records
from services.store.model.errors import QueueUnknown
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Timing
from tests.faults.ring.history import History
from tests.faults.ring.nodes import STORE, RingStatus, store_options
from tests.faults.ring.plan import GROUP, INBOX, INBOX_STORE, OUTBOX, OUTBOX_STORE, QUEUES
from tests.servers import Server

DOMAIN = "main"
AT_ONCE = 1000  # messages per take


class System:
    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.server = Server("valkey", directory / f"store{number}", store_options())
        self._store = Store(self.server.url, "faults", timing=Timing(beat_s=STORE["heartbeat_s"]))
        self._queues: dict[str, Queue] = {}

    async def open(self) -> None:
        """Initialise the running store and declare its queues."""
        await self._store.initialise()
        wanted: dict[str, dict[str, object]] = {
            name: {"visibilityTimeout": "2s"} for name, store in QUEUES.items() if store == self.number
        }
        if self.number == OUTBOX_STORE:
            wanted[OUTBOX] = {"bindings": {"ring": {"outbox": GROUP}}}
        if self.number == INBOX_STORE:
            wanted[INBOX] = {"bindings": {"ring": {"inbox": GROUP}}}
        for name, document in wanted.items():
            self._queues[name], _ = await self._store.catalogue.declare(
                name, QueueSpec.model_validate(document), "faults"
            )

    async def close(self) -> None:
        await self._store.close()

    async def put(self, name: str, bodies: list[bytes]) -> None:
        """Put messages into a queue. Raise StoreError on failure."""
        refused = await self._asker().publish(
            self._queues[name], [records.encode(b) for b in bodies], "faults"
        )
        assert not refused, refused

    async def board(self) -> list[RingStatus | None]:
        """Return the status that nodes wrote to this store, or an empty list while it is unavailable."""
        try:
            return [node.document for node in await self._store.ring_nodes.all()]
        except StoreError:
            return []

    async def is_at_rest(self, nodes: Iterable[str]) -> bool:
        """Return whether no lease is left and these nodes have nothing to send; False if the store is unavailable."""
        try:
            for name, queue in self._queues.items():
                stats = await self._store.listing.stats(queue)
                if stats["in_flight"] or (name == OUTBOX and stats["ready"]):
                    return False
            return all([await self._has_sent_all(node) for node in nodes])
        except StoreError:
            return False

    async def _has_sent_all(self, node: str) -> bool:
        try:
            stats = await self._store.listing.stats(await self._store.catalogue.find(f"ring/{GROUP}/{node}"))
        except QueueUnknown:  # the node has not had anything to send
            return True
        return not stats["ready"] and not stats["in_flight"]

    async def count(self) -> int:
        """Return the number of ready messages in all queues. Raise StoreError on failure."""
        return sum([(await self._store.listing.stats(queue))["ready"] for queue in self._queues.values()])

    async def read(self, history: History) -> None:
        """Take the remaining messages and read the dead letters. Raise StoreError on failure."""
        await self._store.open_domain(DOMAIN).pipe.ready()
        client = self._asker()
        for name, queue in self._queues.items():
            letters = DeadLetters(self._store.get_domain(DOMAIN), queue)
            history.dead[name] = Counter([letter.body async for letter in letters.matching()])
            found = history.left[name] = Counter()
            while got := await client.take(queue, AT_ONCE):
                found.update(body for delivery in got for body in _bodies(delivery))
                await client.settle(got)
        history.inbox += history.left.pop(INBOX, Counter())

    def _asker(self) -> AsyncClient:
        return AsyncClient(self._store.open_domain(DOMAIN).pipe)


def _bodies(delivery: Delivery) -> list[bytes]:
    return [records.decode(record).body for record in delivery.records()]
