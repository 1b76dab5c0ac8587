"""Queue spans for the collector without blocking, send them in a thread, and count them by outcome.

An unreachable or slow collector costs memory for `tracing.queue` spans at most: further spans are dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from services.kit.config.settings import TracingSettings
from services.kit.tracing.measures import DROPPED, EXPORTED, FAILED, LIMITED, UNFOLLOWED

log = logging.getLogger(__name__)

FLUSH_TIMEOUT_S = 2.0  # for spans that are left when the process exits
POLL_S = 0.01


class SpanContext(Protocol):
    """The identity of a span."""

    @property
    def trace_id(self) -> int:
        """Return the trace's id, 128 bits."""

    @property
    def span_id(self) -> int:
        """Return the span's id, 64 bits."""


class Finished(Protocol):
    """A finished span, as the store records it."""

    @property
    def name(self) -> str:
        """Return the span's name."""

    @property
    def kind(self) -> int:
        """Return the span's kind, numbered as in OpenTelemetry's API."""

    @property
    def context(self) -> SpanContext:
        """Return the span's identity."""

    @property
    def parent(self) -> SpanContext | None:
        """Return the parent span's identity."""

    @property
    def links(self) -> Sequence[SpanContext]:
        """Return the identities of linked spans."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes."""

    @property
    def start_ns(self) -> int:
        """Return the start, in ns since 1970."""

    @property
    def end_ns(self) -> int:
        """Return the end, in ns since 1970."""

    @property
    def error(self) -> str:
        """Return the error, '' without one."""


class Sender(Protocol):
    """A client of the collector."""

    def send(self, spans: Sequence[Finished]) -> tuple[int, str]:
        """Send spans and wait. Return how many the collector did not accept, and why."""

    def close(self) -> None:
        """Close the connection. No `send` follows."""

    def give_up(self) -> None:
        """Stop a `send` that waits for a retry. May be called from another thread."""


class TokenBucket:
    """Token bucket with a burst of one second."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = self._most = max(1.0, per_s)
        self._at = time.monotonic()

    def take(self) -> bool:
        """Take a token; return False if no token is left."""
        if self._left < 1:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * self._per_s)
            self._at = now
            if self._left < 1:
                return False
        self._left -= 1
        return True


class Recorder:
    """The queue of spans that the store fills, and the thread that sends them."""

    def __init__(self, settings: TracingSettings, sender: Sender, count: Callable[[str, int], None]) -> None:
        self.ratio = settings.ratio
        self._sender = sender
        self._count = count
        self._beginning = TokenBucket(settings.most_per_s)
        self._following = TokenBucket(settings.most_followed_per_s)
        self._queue: deque[Finished] = deque()
        self._most = settings.queue
        self._batch = settings.batch
        self._interval_s = settings.interval_s
        self._left_out = {LIMITED: 0, UNFOLLOWED: 0}  # grow in the loop; published by the thread
        self._published = dict(self._left_out)
        self._awake = threading.Event()
        self._stopping = False
        self._fault = ""
        self._thread = threading.Thread(target=self._send_until_stopped, name="traces", daemon=True)
        for result in (EXPORTED, FAILED, DROPPED, LIMITED, UNFOLLOWED):
            count(result, 0)

    def start(self) -> None:
        """Start the thread: once, in the process that is traced."""
        self._thread.start()

    # Called by the store

    def admit(self) -> bool:
        """Return whether one more message may begin a trace."""
        return self._beginning.take() or self._leave_out(LIMITED)

    def follow(self) -> bool:
        """Return whether spans of one more traced message may be recorded.

        It has a limit of its own: with a common limit, new traces would leave hardly any room to continue old ones.
        """
        return self._following.take() or self._leave_out(UNFOLLOWED)

    def _leave_out(self, result: str) -> bool:
        self._left_out[result] += 1
        return False

    def left_out(self, number: int) -> None:
        """Count messages that began no trace because of the limit."""
        self._left_out[LIMITED] += number

    def record(self, span: Finished) -> None:
        """Queue a span; drop it if the queue is full."""
        if len(self._queue) >= self._most:
            self._count(DROPPED, 1)
            return
        self._queue.append(span)
        if len(self._queue) == self._batch:
            self._awake.set()

    # The thread

    def _send_until_stopped(self) -> None:
        while not self._stopping:
            self._awake.wait(self._interval_s)
            self._awake.clear()
            self._send_all()
        self._send_all()
        self._sender.close()

    def _send_all(self) -> None:
        for result, number in self._published.items():
            left_out = self._left_out[result]  # it may grow meanwhile
            self._count(result, left_out - number)
            self._published[result] = left_out
        while batch := [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]:
            try:
                lost, fault = self._sender.send(batch)
            except Exception as error:  # noqa: BLE001 - no error of a collector may end the thread
                lost, fault = len(batch), type(error).__name__  # its text may contain a secret header
            self._count(EXPORTED, len(batch) - lost)
            self._count(FAILED, lost)
            self._log_change(fault)

    def _log_change(self, fault: str) -> None:
        """Log when sending begins to fail or works again."""
        if fault and not self._fault:
            log.warning(
                "traces cannot be sent to the collector: %s", fault, extra={"action": "collector_away"}
            )
        elif self._fault and not fault:
            log.info("traces are sent to the collector again", extra={"action": "collector_there"})
        self._fault = fault

    # Shutdown

    async def close(self, hurries: Callable[[], bool] = lambda: False) -> None:
        """Send the remaining spans for up to FLUSH_TIMEOUT_S, or until `hurries`; then drop them.

        A thread that is still busy then is abandoned; the process exits without it.
        """
        self._stopping = True
        self._awake.set()
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        while self._thread.is_alive() and time.monotonic() < deadline and not hurries():  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(POLL_S)
        self._sender.give_up()
        if left := len(self._queue):
            self._queue.clear()
            self._count(DROPPED, left)
