"""The verbs with `await`, for whoever does one thing after another: the command line, tools, tests. Never for clients:
every queue lets it."""

from __future__ import annotations

import asyncio

from services.store.model.client import INTERNAL_CLIENT, Client
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.identities import Identity
from services.store.model.operations import CommitPart, Refusals, Source
from services.store.model.queues import Queue
from services.store.model.requests import Outcome
from services.store.pipeline.answer import Answer
from services.store.pipeline.pipe import Pipe


class AsyncClient:
    """One source of requests to a domain: each is answered before the next is made. Every verb raises StoreError."""

    def __init__(self, pipe: Pipe, *, client: Client = INTERNAL_CLIENT, begins_traces: bool = True) -> None:
        """client, begins_traces: as of a `Source`."""
        self._pipe = pipe
        self._source = Source(client, begins_traces=begins_traces)

    async def publish(self, queue: Queue, records: list[bytes], origin: str) -> Refusals:
        """1 to 1,000 records: [] once all are stored, else (index, why) of those that are not."""
        answer: Answer[Refusals] = Answer()
        self._pipe.messages.publish(self._source, queue, records, origin, answer.take)
        return await answer

    async def take(self, queue: Queue, want: int) -> list[Delivery]:
        """Up to `want` messages (1 to 1,000), leased. If the caller is cancelled meanwhile, they go back."""
        answer: Answer[list[Delivery]] = Answer(unwanted=self._give_back)

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if more and got == [] and not answer.done():
                self._pipe.messages.take(
                    self._source, queue, want, taken
                )  # those looked at had expired, or were others'
            else:
                answer.take(got)

        self._pipe.messages.take(self._source, queue, want, taken)
        try:
            return await answer
        except asyncio.CancelledError:
            answer.forget()
            raise

    async def settle(self, deliveries: list[Delivery]) -> None:
        """Acknowledges one or more deliveries of one queue."""
        answer: Answer[None] = Answer()
        self._pipe.messages.settle(self._source, deliveries, answer.take)
        await answer

    async def release(
        self, deliveries: list[Delivery], *, failed: bool = False, to_end: bool = False, error: str = ""
    ) -> None:
        """Returns one or more deliveries to their old places, or to the end. failed: it counts as an attempt."""
        answer: Answer[None] = Answer()
        self._pipe.messages.release(
            self._source, deliveries, failed=failed, to_end=to_end, error=error, done=answer.take
        )
        await answer

    async def reject(self, deliveries: list[Delivery], reason: str, error: str = "") -> None:
        """Moves one or more deliveries to the dead letters."""
        answer: Answer[None] = Answer()
        self._pipe.messages.reject(self._source, deliveries, reason, error, answer.take)
        await answer

    async def note(self, delivery: Delivery, note: str) -> None:
        """Writes something beside a delivery (see `Messages.note`)."""
        answer: Answer[None] = Answer()
        self._pipe.messages.note(self._source, delivery, note, answer.take)
        await answer

    async def commit(self, identifier: str, parts: list[CommitPart], *, digest: str = "") -> None:
        """All parts or none, and under this identifier only once (see `Idempotent.commit`). Raises BatchDiffers."""
        answer: Answer[None] = Answer()
        self._pipe.idempotent.commit(self._source, identifier, parts, answer.take, digest=digest)
        await answer

    async def publish_once(
        self,
        identity: Identity,
        queue: Queue,
        record: bytes,
        origin: str,
        *,
        holder: str = "",
        reason: str = "",
        error: str = "",
    ) -> Outcome:
        """Stored now, or before under this identity (see `Idempotent.publish`). Raises BatchDiffers."""
        answer: Answer[Outcome] = Answer()
        self._pipe.idempotent.publish(
            *(self._source, identity, queue, record, origin, answer.take),
            holder=holder,
            reason=reason,
            error=error,
        )
        return await answer

    def _give_back(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            self._pipe.messages.give_back(deliveries)
