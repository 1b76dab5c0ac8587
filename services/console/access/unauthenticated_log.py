"""Who comes without saying who he is: a line in the log for each address and minute, however often he comes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

EACH_S = 60.0
MOST = 1000  # addresses in one minute; further ones are counted together


class Strangers:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = float("-inf")
        self._came: dict[str, int] = {}

    def came(self, address: str, method: str, path: str) -> None:
        """The first of a minute is logged; how many more there were, once it is over and somebody comes."""
        now = self._clock()
        if now - self._began >= EACH_S:
            self._end_minute()
            self._began = now
        known = address if address in self._came or len(self._came) < MOST else "others"
        self._came[known] = self._came.get(known, 0) + 1
        if self._came[known] == 1:
            fields = {"action": "stranger", "address": known, "method": method, "path": path}
            log.warning("%s did not say who it is", known, extra=fields)

    def _end_minute(self) -> None:
        for address, number in self._came.items():
            if number > 1:
                fields = {"action": "stranger_again", "address": address, "number": number - 1}
                log.warning("%s did not say who it is %d more times", address, number - 1, extra=fields)
        self._came.clear()
