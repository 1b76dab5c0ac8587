"""Is the peer still taking what we write? Watched only while it matters: output held up, or closing."""

from __future__ import annotations

import socket
from collections.abc import Callable

from services.kit.net import sockets

CHECKS = 8  # a stall is noticed after its limit and at most an eighth more


class OutputWatch:
    """One connection's output, from the moment it is watched: a `Holder` of the output budget.

    Times in seconds of the loop's clock.
    """

    __slots__ = ("_acked", "_every_s", "_limit_s", "_sock", "_stalled_since", "evict", "next_check")

    def __init__(
        self,
        sock: socket.socket,
        limit_s: float,
        now: float,
        evict: Callable[[], None],
        first_check_s: float = 1e9,
    ) -> None:
        """Progress is looked for every eighth of `limit_s`, the first time after `first_check_s` at most.

        evict: what to do when all output together is too much, and this is the most.
        """
        self.evict = evict
        self._sock = sock
        self._limit_s = limit_s
        self._every_s = min(limit_s / CHECKS, first_check_s)
        self._stalled_since = now
        self._acked = sockets.acked_mark(sock)
        self.next_check = now + self._every_s

    def is_stalled(self, now: float) -> bool:
        """True if the peer's TCP has acknowledged nothing for the limit."""
        self.next_check = now + self._every_s
        acked = sockets.acked_mark(self._sock)
        if acked != self._acked:
            self._acked = acked
            self._stalled_since = now
        return now - self._stalled_since >= self._limit_s
