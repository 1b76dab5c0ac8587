"""The verbs with `await`, for whoever does one thing after another: the command line, tools, tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from services.store.call import Part, Refusals, Source
from services.store.delivery import Delivery
from services.store.errors import StoreError
from services.store.pipe import Pipe
from services.store.queues import Queue

AnswerT = TypeVar("AnswerT")


class Asker:
    """One source of requests to a domain: each is answered before the next is made. Every verb raises StoreError."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._source = Source()

    async def publish(self, queue: Queue, records: list[bytes], origin: str) -> Refusals:
        """As Verbs.publish: [] once all are stored, else (index, why) of those that are not."""
        waiter: _Waiter[Refusals] = _Waiter()
        self._pipe.publish(self._source, queue, records, origin, waiter.answer)
        return await waiter.answered

    async def take(self, queue: Queue, want: int) -> list[Delivery]:
        """Up to `want` messages (1 to 1,000), leased. Cancelled meanwhile, they go back."""
        waiter: _Waiter[list[Delivery]] = _Waiter(unwanted=self._give_back)
        self._pipe.take(self._source, queue, want, lambda got, _more: waiter.answer(got))
        return await waiter.answered

    async def settle(self, deliveries: list[Delivery]) -> None:
        """Acknowledges deliveries of one queue."""
        waiter: _Waiter[None] = _Waiter()
        self._pipe.settle(self._source, deliveries, waiter.answer)
        await waiter.answered

    async def release(self, deliveries: list[Delivery]) -> None:
        """Returns them, unharmed, to their old places."""
        waiter: _Waiter[None] = _Waiter()
        self._pipe.release(self._source, deliveries, failed=False, done=waiter.answer)
        await waiter.answered

    async def commit(self, identifier: str, parts: list[Part]) -> None:
        """As Verbs.commit: once, ever, under this identifier."""
        waiter: _Waiter[None] = _Waiter()
        self._pipe.commit(self._source, identifier, parts, waiter.answer)
        await waiter.answered

    def _give_back(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            self._pipe.give_back(deliveries)


class _Waiter(asyncio.Future[AnswerT]):
    """Takes one answer by callback; an answer that nobody waits for any more goes to `unwanted`."""

    def __init__(self, unwanted: Callable[[AnswerT], Any] | None = None) -> None:
        super().__init__()
        self._unwanted = unwanted

    @property
    def answered(self) -> asyncio.Future[AnswerT]:
        return self

    def answer(self, answer: AnswerT | StoreError) -> None:
        if isinstance(answer, StoreError):
            if not self.done():
                self.set_exception(answer)
        elif not self.done():
            self.set_result(answer)
        elif self._unwanted is not None:
            self._unwanted(answer)
