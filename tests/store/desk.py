"""Use a store as one process does: await each verb, raise and count refusals."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from services.store import (
    CommitPart,
    DeadLetters,
    Delivery,
    Outcome,
    PipeSettings,
    Queue,
    QueueSpec,
    Source,
    Store,
    StoreError,
)
from services.store.model import records
from services.store.model.client import INTERNAL_CLIENT
from services.store.model.identities import JournalNumber, TransactionId
from services.store.pipeline.domain import Domain, Timing
from services.store.store import DEFAULT_DOMAIN
from tests.servers import PATIENCE_S, Server


def encode(*bodies: bytes) -> list[bytes]:
    return [records.encode(body) for body in bodies]


def bodies(deliveries: list[Delivery]) -> list[bytes]:
    return [records.decode(record).body for d in deliveries for record in d.records()]


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"m%05d" % i for i in range(first, first + count)]


async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait until `condition`, which may be a coroutine function, returns a true value, and return that."""
    end = time.monotonic() + patience_s
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.01)


class Desk:
    """One Store and one source of requests. `refusals` counts the reports to its observer."""

    def __init__(
        self,
        server: Server | str,
        *,
        edge: str = "test",
        pipe: PipeSettings | None = None,
        timing: Timing | None = None,
        domain: str = DEFAULT_DOMAIN,
        initialise: bool = True,
    ) -> None:
        self.url = server if isinstance(server, str) else server.url
        self.refusals: Counter[str] = Counter()
        self.store = Store(self.url, edge, pipe=pipe, timing=timing, observe=self._observe)
        self.source = Source(INTERNAL_CLIENT)
        self._others: list[Desk] = []
        self._name = domain
        self._initialise = initialise
        self._settings: dict[str, Any] = {"pipe": pipe, "timing": timing, "domain": domain}

    def _observe(self, reason: str, number: int) -> None:
        if number:
            self.refusals[reason] += number

    async def __aenter__(self) -> Desk:
        try:
            if self._initialise:
                await self.store.initialise()
            await self.domain.pipe.ready()
        except BaseException:
            await self.close(0.1)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(0.1 if kind else 5.0)

    async def close(self, timeout: float = 5.0) -> None:
        for other in self._others:
            await other.close(timeout)
        await self.store.close(timeout)

    def another(self, **settings: Any) -> Desk:
        """Return a second process on the same store."""
        other = Desk(self.url, **{**self._settings, "initialise": False, **settings})
        self._others.append(other)
        return other

    @property
    def domain(self) -> Domain:
        return self.store.open_domain(self._name)

    @property
    def pipe(self) -> Any:
        return self.domain.pipe

    async def queue(self, name: str = "orders", **spec: Any) -> Queue:
        """Declare a new queue; the spec has Python's names."""
        queue, new = await self.store.catalogue.declare(
            name, QueueSpec(**{"domain": self._name, **spec}), "test"
        )
        assert new
        return queue

    # verbs

    def expecting(self) -> tuple[asyncio.Future[Any], Callable[..., None]]:
        """Return a future, and the callback that completes it."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(result: Any = None, *_more: Any) -> None:
            assert not future.done(), f"answered twice: {future}, then {result!r}"
            if isinstance(result, StoreError):
                future.set_exception(result)
            else:
                future.set_result(result)

        return future, answered

    def publishing(
        self,
        queue: Queue,
        *messages: bytes,
        origin: str = "test 1",
        holder: str = "",
        source: Source | None = None,
        **how: Any,
    ) -> asyncio.Future[list[tuple[int, StoreError]]]:
        future, done = self.expecting()
        self.pipe.messages.publish(
            source or self.source, queue, encode(*messages), origin, done, holder, **how
        )
        return future

    async def publish(self, queue: Queue, *messages: bytes, **how: Any) -> list[tuple[int, StoreError]]:
        """Publish records; return [] or (index, error) of those refused."""
        return await self.publishing(queue, *messages, **how)

    async def put(self, queue: Queue, *messages: bytes) -> None:
        """Publish any number of bodies, all of which must be accepted."""
        for at in range(0, len(messages), 1000):
            assert await self.publish(queue, *messages[at : at + 1000]) == []

    def taking(
        self, queue: Queue, want: int = 1000, source: Source | None = None, **how: Any
    ) -> asyncio.Future[list[Delivery]]:
        future, done = self.expecting()
        self.pipe.messages.take(source or self.source, queue, want, done, **how)
        return future

    async def take(self, queue: Queue, want: int = 1000, **how: Any) -> list[Delivery]:
        return await self.taking(queue, want, **how)

    def settling(self, deliveries: list[Delivery]) -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.messages.settle(self.source, deliveries, done)
        return future

    async def settle(self, deliveries: list[Delivery]) -> None:
        await self.settling(deliveries)

    def releasing(self, deliveries: list[Delivery], **how: Any) -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.messages.release(self.source, deliveries, **{"failed": False, **how}, done=done)
        return future

    async def release(self, deliveries: list[Delivery], **how: Any) -> None:
        """Return deliveries; how: failed, to_end, error."""
        await self.releasing(deliveries, **how)

    def rejecting(self, deliveries: list[Delivery], reason: str, error: str = "") -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.messages.reject(self.source, deliveries, reason, error, done)
        return future

    async def reject(self, deliveries: list[Delivery], reason: str = "refused", error: str = "") -> None:
        await self.rejecting(deliveries, reason, error)

    def noting(self, delivery: Delivery, note: str) -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.messages.note(self.source, delivery, note, done)
        return future

    async def note(self, delivery: Delivery, note: str) -> None:
        await self.noting(delivery, note)

    def burying(
        self, queue: Queue, record: bytes, reason: str, error: str = "", origin: str = "t"
    ) -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.messages.bury(self.source, queue, record, origin, reason, error, done)
        return future

    async def bury(
        self, queue: Queue, record: bytes, reason: str, error: str = "", origin: str = "t"
    ) -> None:
        await self.burying(queue, record, reason, error, origin)

    def counting(self, queue: Queue) -> asyncio.Future[int]:
        future, done = self.expecting()
        self.pipe.messages.count(self.source, queue, done)
        return future

    async def count(self, queue: Queue) -> int:
        return await self.counting(queue)

    def committing(self, identifier: str, *parts: CommitPart, **how: Any) -> asyncio.Future[None]:
        future, done = self.expecting()
        self.pipe.idempotent.commit(self.source, identifier, list(parts), done, **how)
        return future

    async def commit(self, identifier: str, *parts: CommitPart, **how: Any) -> None:
        await self.committing(identifier, *parts, **how)

    async def publish_once(
        self,
        identifier: str,
        queue: Queue,
        body: bytes,
        *,
        holder: str = "",
        digest: str = "",
        keep_ms: int = 60_000,
    ) -> Outcome:
        future, done = self.expecting()
        (record,) = encode(body)
        identity = TransactionId(identifier, keep_ms, digest)
        self.pipe.idempotent.publish(self.source, identity, queue, record, "t", done, holder=holder)
        answer: Outcome = await future
        return answer

    def numbering(
        self, journal: str, number: int, queue: Queue, body: bytes, **how: Any
    ) -> asyncio.Future[Outcome]:
        future, done = self.expecting()
        (record,) = encode(body)
        identity = JournalNumber(journal, number)
        self.pipe.idempotent.publish(self.source, identity, queue, record, "sysv", done, **how)
        return future

    async def stats(self, queue: Queue) -> dict[str, Any]:
        return await self.store.listing.stats(queue)

    def dead(self, queue: Queue) -> DeadLetters:
        return DeadLetters(self.domain, queue)

    async def drain(self, queue: Queue) -> list[bytes]:
        """Take and settle all ready messages."""
        found: list[bytes] = []
        while got := await self.take(queue):
            found += bodies(got)
            await self.settle(got)
        return found

    async def reconcile(self, queue: Queue, **how: Any) -> dict[str, int]:
        """Reconcile the whole queue; return the errors of its counters."""
        while (wrong := await self.domain.tidy(queue, **how)) is None:
            pass
        return wrong
