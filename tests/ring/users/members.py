"""Nodes without sockets: USERs use links in memory that keep order, have a window, and break."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from protos.ring import parse_frame
from services.kit.metrics.metrics import Metrics
from services.kit.tracing import Recorder
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.ring.node.users import Users
from services.ring.remote_queues import NotDone, RemoteMessage
from services.ring.service import RingService
from services.ring.settings import RingSettings
from services.store import INTERNAL_CLIENT, Queue, QueueSpec, Store
from services.store.deadletters.dead_letters import DeadLetter, DeadLetters
from services.store.model import records
from services.store.model.internal import KEEPER, is_internal
from services.store.pipeline.async_client import AsyncClient
from tests.live import until

QUICK_STORE = {
    "patience_s": 0.5,
    "reply_timeout_s": 1.0,
    "sweep_s": 1.0,
    "heartbeat_s": 1.0,
    "session_timeout_s": 5.0,
}


class Member:
    """One node with its own store connection, as in a process."""

    def __init__(
        self,
        url: str,
        name: bytes,
        group: int = 1,
        recorder: Recorder | None = None,
        request_timeout_s: float = 5.0,
        **how: Any,
    ) -> None:
        """Create a member. recorder: receives its trace spans."""
        self.name = name
        self.settings = RingSettings.model_validate(
            {"store": QUICK_STORE, "request_timeout_s": request_timeout_s}
        )
        self.metrics = Metrics("ring")
        self.metrics.store_observer.recorder = recorder
        store = self.settings.store.store(
            url, "ring", self.settings.request_timeout_s, self.metrics.store_observer
        )
        self.service = RingService(self.settings, store, self.metrics)
        self.users = Users(self.service, name, group=group, **how)
        self._is_closed = False

    @property
    def store(self) -> Store:
        return self.service.store

    async def start(self) -> Member:
        """Start; return once it may send."""
        self.store.start_serving()
        self.users.start()
        await until(lambda: self.users.ownership.queue is not None)
        return self

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self.users.stop_taking()
            await self.users.close()
            await self.service.close()

    # requests of its clients

    async def push(self, queue: bytes, body: bytes) -> NotDone | None:
        return await self._asked(self.users.remote_requests.push, queue, body)

    async def pull(self, queue: bytes) -> RemoteMessage | NotDone:
        answer: RemoteMessage | NotDone = await self._asked(self.users.remote_requests.pull, queue)
        return answer

    async def destroy(self, queue: bytes) -> NotDone | None:
        return await self._asked(self.users.remote_requests.destroy, queue)

    async def _asked(self, verb: Callable[..., None], *args: bytes) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        verb(*args, answer.set_result)
        assert not answer.done(), "a reply came before the request ended"
        return await answer

    def count(self, what: str) -> int:
        return self.users.counts.now[what]

    def store_events(self, reason: str) -> float:
        labels = {"edge": "ring", "reason": reason}
        return self.metrics.registry.get_sample_value("penstock_store_events_total", labels) or 0.0

    # its store

    async def declare(self, name: str, owner: str = "test", **spec: Any) -> Queue:
        queue, _ = await self.store.catalogue.declare(
            name, QueueSpec.model_validate(spec), owner, replace=True
        )
        return queue

    async def put(self, name: str, *bodies: bytes) -> None:
        queue = await self.store.catalogue.find(name)
        encoded = [records.encode(body) for body in bodies]
        client = KEEPER if is_internal(name) else INTERNAL_CLIENT
        asker = AsyncClient(self.service.pipe(queue), client=client)
        for first in range(0, len(encoded), 500):
            assert await asker.publish(queue, encoded[first : first + 500], "test") == []

    async def bodies(self, name: str) -> list[bytes]:
        """Return the bodies in the queue that are not leased."""
        queue = await self.store.catalogue.find(name)
        found = await self.store.open_domain(queue.domain).peek(queue, 10_000, 64 << 20)
        return [records.decode(record).body for d in found for record in d.records()]

    async def stats(self, name: str) -> dict[str, Any]:
        return await self.store.listing.stats(await self.store.catalogue.find(name))

    async def dead(self, name: str) -> list[DeadLetter]:
        queue = await self.store.catalogue.find(name)
        letters = DeadLetters(self.store.get_domain(queue.domain), queue)
        return [letter async for letter in letters.matching()]

    async def has_nothing_to_send(self) -> bool:
        stats = await self.stats(self.users.queue_name)
        return bool(stats["ready"] == 0 and stats["in_flight"] == 0)


def local_errors(node: Member) -> float | None:
    return node.metrics.registry.get_sample_value("penstock_local_errors_total", {"edge": "ring"})


class Hand:
    """The predecessor and the successor of a node, driven by hand."""

    def __init__(self, node: Member) -> None:
        self.node = node
        self.safe: list[bytes] = []

    def sends(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.node.users.user_sink.received(payload, lambda payload=payload: self.safe.append(payload))  # type: ignore[misc]

    async def takes(self, number: int) -> list[OutgoingMessage]:
        taken: list[OutgoingMessage] = []

        def enough() -> bool:
            taken.extend(self.node.users.user_source.take(number - len(taken)))
            return len(taken) == number

        await until(enough)
        return taken


def is_mark(payload: bytes) -> bool:
    """Return whether a payload is a mark (ring.md 5.5)."""
    frame = parse_frame(payload)
    return frame is not None and frame.queue == b"ring/mark"


class Link:
    """A link from a node to its successor.

    As the real one, it answers in order, and only messages that the successor reports as safe.
    """

    def __init__(self, source: Member, goal: Member, window: int = 64, is_up: bool = True) -> None:
        self.source, self.goal = source, goal
        self.window = window
        self.is_up = is_up
        self.life = 0
        self.carried: list[bytes] = []  # all messages received except marks, if `keeps`
        self.keeps = False
        self.unanswered: deque[list[Any]] = deque()  # [parcel, whether it is safe]
        self._on_its_way: deque[list[Any]] = deque()
        self._scheduled = False
        self._loop = asyncio.get_running_loop()
        source.users.user_source.on_ready(self.pump)

    def pump(self) -> None:
        if not self.is_up:
            return
        for outgoing_message in self.source.users.user_source.take(self.window - len(self.unanswered)):
            entry = [outgoing_message, False]
            self.unanswered.append(entry)
            self._on_its_way.append(entry)
        if self._on_its_way and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def cut(self, lost: int = 0) -> None:
        """Break the link: the last `lost` messages had not arrived. Unanswered ones return, the last first."""
        self.is_up = False
        self.life += 1
        for _ in range(min(lost, len(self._on_its_way))):
            self._on_its_way.pop()
        self._deliver()
        left, self.unanswered = self.unanswered, deque()
        for outgoing_message, _ in reversed(left):
            outgoing_message.returned()

    def mend(self, goal: Member | None = None) -> None:
        self.goal = goal or self.goal
        self.is_up = True
        self.pump()

    def _deliver(self) -> None:
        self._scheduled = False
        while self._on_its_way:
            entry = self._on_its_way.popleft()
            outgoing_message: OutgoingMessage = entry[0]
            if self.keeps and not is_mark(outgoing_message.payload):
                self.carried.append(outgoing_message.payload)
            is_over = False

            def safe(entry: list[Any], life: int) -> None:
                assert is_over, "it is safe before it was received"  # noqa: B023
                self._safe(entry, life)

            self.goal.users.user_sink.received(outgoing_message.payload, partial(safe, entry, self.life))
            is_over = True

    def _safe(self, entry: list[Any], life: int) -> None:
        assert not entry[1], "it is safe twice"
        if life != self.life:
            return
        entry[1] = True
        while self.unanswered and self.unanswered[0][1]:
            self.unanswered.popleft()[0].acknowledged()
        self.pump()


class Ring:
    """Members in a ring: each sends to the next, the last to the first."""

    def __init__(self, members: list[Member], window: int = 64) -> None:
        self.members = members
        behind = [*members[1:], members[0]]
        self.links = [Link(a, b, window) for a, b in zip(members, behind, strict=True)]
        for link in self.links:
            link.pump()

    async def settle_down(self) -> None:
        """Wait until no message is under way."""
        for _ in range(2):  # while the second is checked, the first may receive something
            for member in self.members:
                await until(member.has_nothing_to_send)


Start = Callable[..., Awaitable[Member]]


async def lose_queue(store: Store, name: str) -> None:
    """Delete the queue of a running node, as an earlier version's command line does."""
    await store.catalogue.delete(replace(await store.catalogue.find(name), owner="unknown"))
