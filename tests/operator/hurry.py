"""Run an event loop with simulated time: pauses are exact and take no real time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0
        return super().select(0 if timeout else timeout)


class HurriedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def hurried(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(work)
