"""Which messages begin a trace: each with the same chance, drawn once for all that pass until the next one."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator

from services.store.tracing.spans import Recorder

NEVER = 1 << 62
PAUSE_S = 0.02  # after a message that may not be traced, as there were too many: nobody asks for so long


class Sampling:
    """`passes` is all that is asked for most messages, once for a run of them. In a running loop."""

    __slots__ = ("_ratio", "_recorder", "_until_next")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._ratio = recorder.ratio
        self._until_next = self._gap()

    def passes(self, number: int) -> bool:
        """Of the next so many messages none begins a trace. If not, `chosen` is to be asked for the same ones."""
        self._until_next -= number
        return self._until_next > 0

    def chosen(self, number: int) -> Iterator[int]:
        """Which of them do, and may. To be gone through to its end."""
        at = self._until_next + number
        while at <= number:
            if not self._recorder.admit():
                self._pause(number - at)
                return
            yield at - 1
            at += self._gap()
        self._until_next = at - number

    def _pause(self, left: int) -> None:
        """However many messages come meanwhile, none of them costs more than one that is not chosen."""
        self._until_next = NEVER - left
        asyncio.get_running_loop().call_later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        """Chance has no memory: the next may be drawn from here."""
        self._recorder.left_out(round((NEVER - self._until_next) * self._ratio))
        self._until_next = self._gap()

    def _gap(self) -> int:
        if self._ratio >= 1:
            return 1
        if self._ratio <= 0:
            return NEVER
        return min(int(math.log(1 - random.random()) / math.log1p(-self._ratio)) + 1, NEVER)
