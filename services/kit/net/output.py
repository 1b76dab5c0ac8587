"""Detect peers that stop reading our output. Checked only while output is held up or the connection closes."""

from __future__ import annotations

import socket

from services.kit.net import sockets

CHECKS = 8  # checks per limit: a stall is detected at most 1/8 of the limit late


class OutputWatch:
    """The progress of one connection's output since it is watched. Times are seconds of the loop's clock."""

    __slots__ = ("_acked", "_every_s", "_limit_s", "_sock", "_stalled_since", "next_check")

    def __init__(self, sock: socket.socket, limit_s: float, now: float, max_interval_s: float) -> None:
        """Watch the socket; check every eighth of `limit_s`, and at least every `max_interval_s`."""
        self._sock = sock
        self._limit_s = limit_s
        self._every_s = min(limit_s / CHECKS, max_interval_s)
        self._stalled_since = now
        self._acked = sockets.acked_mark(sock)
        self.next_check = now + self._every_s

    def is_stalled(self, now: float) -> bool:
        """Return whether the peer's TCP has acknowledged nothing for `limit_s`."""
        self.next_check = now + self._every_s
        acked = sockets.acked_mark(self._sock)
        if acked != self._acked:
            self._acked = acked
            self._stalled_since = now
        return now - self._stalled_since >= self._limit_s
