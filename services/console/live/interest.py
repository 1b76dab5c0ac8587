"""Whether anybody wants to know how things are."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

LASTS_S = 15.0  # after the last question


class Interest:
    def __init__(self) -> None:
        self._asked = float("-inf")  # when somebody last wanted to know
        self._watchers = 0
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Somebody does."""
        self._asked = time.monotonic()
        self._wanted.set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """All the time."""
        self._watchers += 1
        self.want()
        try:
            yield
        finally:
            self._watchers -= 1
            self._asked = time.monotonic()

    @property
    def is_over(self) -> bool:
        return not self._watchers and time.monotonic() - self._asked > LASTS_S

    @property
    def is_new(self) -> bool:
        """Somebody came while we waited, or since."""
        return self._wanted.is_set()

    async def wait(self, most_s: float | None) -> None:
        """Until somebody comes, or for so long."""
        self._wanted.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._wanted.wait()
