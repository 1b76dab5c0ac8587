"""Awaitable message operations for the command line, tools and tests.

Not for clients' requests: no queue denies access to it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from services.store.model.client import INTERNAL_CLIENT, Client
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError
from services.store.model.identities import Identity
from services.store.model.operations import CommitPart, Refusals, Source
from services.store.model.queues import Queue
from services.store.model.requests import Outcome
from services.store.pipeline.answer import Answer, answered
from services.store.pipeline.pipe import Pipe


class AsyncClient:
    """A sequential client of one domain. Every method raises StoreError."""

    def __init__(self, pipe: Pipe, *, client: Client = INTERNAL_CLIENT, begins_traces: bool = True) -> None:
        """Use the pipe of an open domain (`Store.open_domain`).

        Args:
            pipe: Of the domain that has the queues.
            client: On whose behalf; the default is admitted by every queue.
            begins_traces: As in `Source`.
        """
        self._pipe = pipe
        self._source = Source(client, begins_traces=begins_traces)

    async def publish(self, queue: Queue, records: list[bytes], origin: str) -> Refusals:
        """Publish 1 to 1,000 records, in order.

        Args:
            queue: Where to.
            records: Encoded by `records.encode`.
            origin: The producer, shown with dead letters.

        Returns:
            (index, error) of each refused record; [] if all are durable at the queue's ack level.
        """
        messages = self._pipe.messages
        refusals: Refusals = await answered(partial(messages.publish, self._source, queue, records, origin))
        return refusals

    async def take(self, queue: Queue, want: int) -> list[Delivery]:
        """Lease up to `want` messages (1 to 1,000); return at once, perhaps without any.

        A delivery may have several messages. Settle, release or reject each one. If the caller is cancelled, they are
        returned to the queue.
        """
        answer: Answer[list[Delivery]] = Answer(unwanted=self._give_back)

        def taken(got: list[Delivery] | StoreError, more: bool) -> None:
            if more and got == [] and not answer.done():
                # every message of this batch had expired or was leased by another consumer
                self._pipe.messages.take(self._source, queue, want, taken)
            else:
                answer.take(got)

        self._pipe.messages.take(self._source, queue, want, taken)
        try:
            return await answer
        except asyncio.CancelledError:
            answer.forget()
            raise

    async def settle(self, deliveries: list[Delivery]) -> None:
        """Acknowledge one or more deliveries of one queue."""
        await answered(partial(self._pipe.messages.settle, self._source, deliveries))

    async def release(
        self, deliveries: list[Delivery], *, failed: bool = False, to_end: bool = False, error: str = ""
    ) -> None:
        """Return deliveries to their old places.

        Args:
            deliveries: What to return.
            failed: Count it towards `max_deliveries`.
            to_end: Return them to the end of their queue instead.
            error: Why it failed, for the dead letter.
        """
        release = partial(self._pipe.messages.release, self._source, deliveries, failed=failed, to_end=to_end)
        await answered(lambda done: release(error=error, done=done))

    async def reject(self, deliveries: list[Delivery], reason: str, error: str = "") -> None:
        """Move one or more deliveries to the dead letters."""
        await answered(partial(self._pipe.messages.reject, self._source, deliveries, reason, error))

    async def note(self, delivery: Delivery, note: str) -> None:
        """Attach a note to a leased message (see `Messages.note`)."""
        await answered(partial(self._pipe.messages.note, self._source, delivery, note))

    async def commit(self, identifier: str, parts: list[CommitPart], *, digest: str = "") -> None:
        """Apply all parts or none, once per identifier (see `Idempotent.commit`). Raises BatchDiffers."""
        commit = self._pipe.idempotent.commit
        await answered(lambda done: commit(self._source, identifier, parts, done, digest=digest))

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
        """Publish one record once per identity (see `Idempotent.publish`). Raises BatchDiffers."""
        publish = partial(self._pipe.idempotent.publish, holder=holder, reason=reason, error=error)
        outcome: Outcome = await answered(partial(publish, self._source, identity, queue, record, origin))
        return outcome

    def _give_back(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            self._pipe.messages.give_back(deliveries)
