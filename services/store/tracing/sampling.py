"""Sample messages that begin a trace, each with the same probability; draw the gap to the next one at once."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator

from services.store.tracing.spans import Recorder

NEVER = 1 << 62
PAUSE_S = 0.02  # sampling pauses for this long after the recorder's rate limit was reached


class Sampling:
    """A sampler. Most runs of messages cost one call of `passes`. It needs a running event loop."""

    __slots__ = ("_ratio", "_recorder", "_until_next")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._ratio = recorder.ratio
        self._until_next = self._gap()

    def passes(self, number: int) -> bool:
        """Return whether none of the next messages begins a trace; if not, call `chosen` for the same messages."""
        self._until_next -= number
        return self._until_next > 0

    def chosen(self, number: int) -> Iterator[int]:
        """Yield the indexes of messages that begin a trace. The caller must exhaust it."""
        at = self._until_next + number
        while at <= number:
            if not self._recorder.admit():
                self._pause(number - at)
                return
            yield at - 1
            at += self._gap()
        self._until_next = at - number

    def _pause(self, left: int) -> None:
        """Let all messages pass for PAUSE_S."""
        self._until_next = NEVER - left
        asyncio.get_running_loop().call_later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        """Count the messages of the pause as left out, and draw the next gap from here."""
        self._recorder.left_out(round((NEVER - self._until_next) * self._ratio))
        self._until_next = self._gap()

    def _gap(self) -> int:
        if self._ratio >= 1:
            return 1
        if self._ratio <= 0:
            return NEVER
        return min(int(math.log(1 - random.random()) / math.log1p(-self._ratio)) + 1, NEVER)
