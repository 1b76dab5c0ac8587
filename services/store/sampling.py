"""Which messages begin a trace: each with the same chance, drawn once for all that pass until the next one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from services.store.spans import Recorder

NEVER = 1 << 62


class Sampling:
    """`passes` is all that is asked for most messages, once for a run of them."""

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
            if not self._recorder.admit(max(1, round((number - at) * self._ratio))):
                at = number + self._gap()  # chance has no memory: the next may be drawn from here
                break
            yield at - 1
            at += self._gap()
        self._until_next = at - number

    def _gap(self) -> int:
        if self._ratio >= 1:
            return 1
        if self._ratio <= 0:
            return NEVER
        return min(int(math.log(1 - random.random()) / math.log1p(-self._ratio)) + 1, NEVER)
