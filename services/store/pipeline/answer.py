"""Convert callbacks to `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from services.store.model.errors import StoreError

AnswerT = TypeVar("AnswerT")


class Answer(asyncio.Future[AnswerT]):
    """A future whose callback is `take`. A result that arrives after the waiter has gone is passed to `unwanted`."""

    def __init__(self, unwanted: Callable[[AnswerT], Any] | None = None) -> None:
        super().__init__()
        self._unwanted = unwanted

    def take(self, answer: AnswerT | StoreError, *_more: Any) -> None:
        """Set the result, or raise it in the waiter if it is a StoreError."""
        if not self.done():
            if isinstance(answer, StoreError):
                self.set_exception(answer)
            else:
                self.set_result(answer)
        elif self._unwanted is not None and not isinstance(answer, StoreError):
            self._unwanted(answer)

    def forget(self) -> None:
        """Pass a result that has already arrived to `unwanted`; called when the waiter was cancelled."""
        if self.done() and not self.cancelled() and self.exception() is None and self._unwanted is not None:
            self._unwanted(self.result())


async def answered(
    ask: Callable[[Callable[..., None]], None], unwanted: Callable[[Any], Any] | None = None
) -> Any:
    """Call `ask(done)` and return what `done` receives, or raise it if it is a StoreError.

    unwanted: receives the result if the caller is cancelled before it arrives.
    """
    answer: Answer[Any] = Answer(unwanted)
    ask(answer.take)
    try:
        return await answer
    except asyncio.CancelledError:
        answer.forget()
        raise
