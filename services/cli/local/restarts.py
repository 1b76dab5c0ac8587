"""How soon a child that ended is started again."""

from __future__ import annotations

import time

FIRST_S = 0.1
LAST_S = 5.0
STABLE_S = 30.0  # a child that lived so long begins with the first pause again


class Restarts:
    """Pauses that double with each failure in a row."""

    def __init__(self) -> None:
        self._failures = 0
        self._started = time.monotonic()

    def started(self) -> None:
        self._started = time.monotonic()

    def pause_s(self) -> float:
        """It has ended: seconds until the next start."""
        if time.monotonic() - self._started > STABLE_S:
            self._failures = 0
        self._failures += 1
        return float(min(FIRST_S * 2 ** (self._failures - 1), LAST_S))
