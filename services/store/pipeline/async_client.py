"""The verbs with `await`, for whoever does one thing after another: the command line, tools, tests. Never for clients:
every queue lets it."""

from __future__ import annotations

import asyncio

from services.store.model.client import OURSELVES, Client
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.operations import Part, Refusals, Source
from services.store.model.queues import Queue
from services.store.model.requests import Outcome
from services.store.pipeline.answer import Answer
from services.store.pipeline.commits import KEEP_TRANSACTIONS_MS
from services.store.pipeline.pipe import Pipe


class Asker:
    """One source of requests to a domain: each is answered before the next is made. Every verb raises StoreError."""

    def __init__(self, pipe: Pipe, *, client: Client = OURSELVES, begins_traces: bool = True) -> None:
        """client, begins_traces: as of a `Source`."""
        self._pipe = pipe
        self._source = Source(client, begins_traces=begins_traces)

    async def publish(self, queue: Queue, records: list[bytes], origin: str) -> Refusals:
        """1 to 1,000 records: [] once all are stored, else (index, why) of those that are not."""
        answer: Answer[Refusals] = Answer()
        self._pipe.publish(self._source, queue, records, origin, answer.take)
        return await answer

    async def take(self, queue: Queue, want: int) -> list[Delivery]:
        """Up to `want` messages (1 to 1,000), leased. If the caller is cancelled meanwhile, they go back."""
        answer: Answer[list[Delivery]] = Answer(unwanted=self._give_back)

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if more and got == [] and not answer.done():
                self._pipe.take(
                    self._source, queue, want, taken
                )  # those looked at had expired, or were others'
            else:
                answer.take(got)

        self._pipe.take(self._source, queue, want, taken)
        try:
            return await answer
        except asyncio.CancelledError:
            answer.forget()
            raise

    async def settle(self, deliveries: list[Delivery]) -> None:
        """Acknowledges one or more deliveries of one queue."""
        answer: Answer[None] = Answer()
        self._pipe.settle(self._source, deliveries, answer.take)
        await answer

    async def release(
        self, deliveries: list[Delivery], *, failed: bool = False, to_end: bool = False, error: str = ""
    ) -> None:
        """Returns one or more deliveries to their old places, or to the end. failed: it counts as an attempt."""
        answer: Answer[None] = Answer()
        self._pipe.release(
            self._source, deliveries, failed=failed, to_end=to_end, error=error, done=answer.take
        )
        await answer

    async def reject(self, deliveries: list[Delivery], reason: str, error: str = "") -> None:
        """Moves one or more deliveries to the dead letters."""
        answer: Answer[None] = Answer()
        self._pipe.reject(self._source, deliveries, reason, error, answer.take)
        await answer

    async def note(self, delivery: Delivery, note: str) -> None:
        """Writes something beside a delivery (see `Verbs.note`)."""
        answer: Answer[None] = Answer()
        self._pipe.note(self._source, delivery, note, answer.take)
        await answer

    async def commit(self, identifier: str, parts: list[Part], *, digest: str = "") -> None:
        """All parts or none, and under this identifier only once, ever. Raises BatchDiffers (see `Verbs.commit`)."""
        answer: Answer[None] = Answer()
        self._pipe.commit(self._source, identifier, parts, answer.take, digest=digest)
        await answer

    async def publish_once(
        self,
        identifier: str,
        queue: Queue,
        record: bytes,
        origin: str,
        *,
        holder: str = "",
        digest: str = "",
        keep_ms: int = KEEP_TRANSACTIONS_MS,
    ) -> Outcome:
        """Stored now, or before under this identifier. Raises BatchDiffers (see `Verbs.publish_once`)."""
        answer: Answer[Outcome] = Answer()
        self._pipe.publish_once(
            self._source, identifier, queue, record, origin, holder, digest, keep_ms, answer.take
        )
        return await answer

    async def publish_numbered(
        self,
        journal: str,
        number: int,
        queue: Queue,
        record: bytes,
        origin: str,
        *,
        reason: str = "",
        error: str = "",
    ) -> Outcome:
        """Stored now, or before under this number or a higher one (see `Verbs.publish_numbered`)."""
        answer: Answer[Outcome] = Answer()
        self._pipe.publish_numbered(
            self._source, journal, number, queue, record, origin, answer.take, reason=reason, error=error
        )
        return await answer

    async def publish_watched(
        self, token: str, queue: Queue, record: bytes, origin: str, keep_ms: int
    ) -> None:
        """One record, whose fate the store tells under the token (see `Verbs.publish_watched`)."""
        answer: Answer[Outcome] = Answer()
        self._pipe.publish_watched(self._source, token, queue, record, origin, keep_ms, answer.take)
        await answer

    def _give_back(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            self._pipe.give_back(deliveries)
