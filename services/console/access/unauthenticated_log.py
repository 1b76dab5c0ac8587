"""Log unauthenticated requests, at most one line per address and minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

INTERVAL_S = 60.0
MAX_ADDRESSES = 1000  # in one interval; further ones are counted as "others"


class UnauthenticatedLog:
    """A log of unauthenticated requests that counts repetitions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = float("-inf")
        self._counts: dict[str, int] = {}

    def add(self, address: str, method: str, path: str) -> None:
        """Log the first request of an address in an interval, and the number of others after it."""
        now = self._clock()
        if now - self._began >= INTERVAL_S:
            self._log_repetitions()
            self._began = now
        key = address if address in self._counts or len(self._counts) < MAX_ADDRESSES else "others"
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] == 1:
            fields = {"action": "stranger", "address": key, "method": method, "path": path}
            log.warning("rejected unauthenticated request from %s", key, extra=fields)

    def _log_repetitions(self) -> None:
        for address, number in self._counts.items():
            if number > 1:
                fields = {"action": "stranger_again", "address": address, "number": number - 1}
                log.warning(
                    "rejected %d more unauthenticated requests from %s", number - 1, address, extra=fields
                )
        self._counts.clear()
