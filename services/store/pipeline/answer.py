"""A verb's answer, awaited: the one place where a callback becomes an `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from services.store.model.errors import StoreError

AnswerT = TypeVar("AnswerT")


class Answer(asyncio.Future[AnswerT]):
    """The answer of one verb: `take` is its callback. One that comes when nothing waits any more goes to `unwanted`."""

    def __init__(self, unwanted: Callable[[AnswerT], Any] | None = None) -> None:
        super().__init__()
        self._unwanted = unwanted

    def take(self, answer: AnswerT | StoreError, *_more: Any) -> None:
        """Set the result, or the exception if it is a StoreError."""
        if not self.done():
            if isinstance(answer, StoreError):
                self.set_exception(answer)
            else:
                self.set_result(answer)
        elif self._unwanted is not None and not isinstance(answer, StoreError):
            self._unwanted(answer)

    def forget(self) -> None:
        """Hand the answer to `unwanted`: its waiter was cancelled, perhaps in the very turn in which it had come."""
        if self.done() and not self.cancelled() and self.exception() is None and self._unwanted is not None:
            self._unwanted(self.result())


async def answered(
    ask: Callable[[Callable[..., None]], None], unwanted: Callable[[Any], Any] | None = None
) -> Any:
    """Call `ask(done)` and return what `done` is given. Raises StoreError.

    unwanted: takes the answer if the caller is cancelled meanwhile.
    """
    answer: Answer[Any] = Answer(unwanted)
    ask(answer.take)
    try:
        return await answer
    except asyncio.CancelledError:
        answer.forget()
        raise
