"""Track whether there are live views or recent requests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

LASTS_S = 15.0  # after the last request


class Interest:
    """Live views and recent requests."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._watchers = 0
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Record a request."""
        self._last = time.monotonic()
        self._requested.set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count a live view."""
        self._watchers += 1
        self.request()
        try:
            yield
        finally:
            self._watchers -= 1
            self._last = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Return whether there are neither live views nor recent requests."""
        return not self._watchers and time.monotonic() - self._last > LASTS_S

    @property
    def is_new(self) -> bool:
        """Return whether there was a request since the last wait began."""
        return self._requested.is_set()

    async def wait(self, most_s: float | None) -> None:
        """Wait for a request, for at most so long."""
        self._requested.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._requested.wait()
