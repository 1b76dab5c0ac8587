"""Spans on their way to the collector: taken without waiting, sent by a thread of its own, counted whatever becomes of
them.

A collector that is away or slow costs memory for `tracing.queue` spans, and nothing else: what comes on top is dropped.
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

LAST_S = 2.0  # for what is left when the process ends
LOOK_S = 0.01


class Place(Protocol):
    """Of a span: as the store has it."""

    @property
    def trace_id(self) -> int: ...
    @property
    def span_id(self) -> int: ...


class Finished(Protocol):
    """An ended span, as the store tells it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> int: ...
    @property
    def context(self) -> Place: ...
    @property
    def parent(self) -> Place | None: ...
    @property
    def links(self) -> Sequence[Place]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def error(self) -> str: ...


class Sender(Protocol):
    def send(self, spans: Sequence[Finished]) -> tuple[int, str]:
        """Waits; how many of them the collector has not taken, and why."""

    def close(self) -> None:
        """No `send` follows."""

    def give_up(self) -> None:
        """From another thread: a `send` that waits for another try ends."""


class TokenBucket:
    """So many a second, and of a second without any so many at once."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = self._most = max(1.0, per_s)
        self._at = time.monotonic()

    def take(self) -> bool:
        if self._left < 1:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._at) * self._per_s)
            self._at = now
            if self._left < 1:
                return False
        self._left -= 1
        return True


class Recorder:
    """What the store is given. `start` once, in the process that is traced; `close` is its end."""

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
        self._left_out = {LIMITED: 0, UNFOLLOWED: 0}  # grow in the loop; told by the thread
        self._left_out_told = dict(self._left_out)
        self._awake = threading.Event()
        self._stopping = False
        self._trouble = ""
        self._thread = threading.Thread(target=self._send_for_ever, name="traces", daemon=True)
        for result in (EXPORTED, FAILED, DROPPED, LIMITED, UNFOLLOWED):
            count(result, 0)

    def start(self) -> None:
        self._thread.start()

    # from the store

    def admit(self) -> bool:
        """Whether one more message may begin a trace."""
        return self._beginning.take() or self._leave_out(LIMITED)

    def follow(self) -> bool:
        """Whether what is done with one more message that is in a trace may be told. Its limit is its own: where new
        traces used that up, hardly any would have more than its beginning."""
        return self._following.take() or self._leave_out(UNFOLLOWED)

    def _leave_out(self, result: str) -> bool:
        self._left_out[result] += 1
        return False

    def left_out(self, number: int) -> None:
        self._left_out[LIMITED] += number

    def record(self, span: Finished) -> None:
        if len(self._queue) >= self._most:
            self._count(DROPPED, 1)
            return
        self._queue.append(span)
        if len(self._queue) == self._batch:
            self._awake.set()

    # the thread

    def _send_for_ever(self) -> None:
        while not self._stopping:
            self._awake.wait(self._interval_s)
            self._awake.clear()
            self._send_all()
        self._send_all()
        self._sender.close()

    def _send_all(self) -> None:
        for result, number in self._left_out_told.items():
            left_out = self._left_out[result]  # it may grow meanwhile
            self._count(result, left_out - number)
            self._left_out_told[result] = left_out
        while batch := [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]:
            try:
                lost, trouble = self._sender.send(batch)
            except Exception as error:  # noqa: BLE001  nothing that a collector does ends this
                lost, trouble = len(batch), type(error).__name__  # its text may have a header's value
            self._count(EXPORTED, len(batch) - lost)
            self._count(FAILED, lost)
            self._tell(trouble)

    def _tell(self, trouble: str) -> None:
        """Once, when it begins or ends."""
        if trouble and not self._trouble:
            log.warning("no traces: %s", trouble, extra={"action": "collector_away"})
        elif self._trouble and not trouble:
            log.info("the collector takes traces again", extra={"action": "collector_there"})
        self._trouble = trouble

    # the end

    async def close(self, hurries: Callable[[], bool] = lambda: False) -> None:
        """What is left is sent, if the collector takes it soon enough: within LAST_S, and until somebody hurries.

        The thread is not waited for then, whatever it is at; the process ends without it.
        """
        self._stopping = True
        self._awake.set()
        deadline = time.monotonic() + LAST_S
        while self._thread.is_alive() and time.monotonic() < deadline and not hurries():  # noqa: ASYNC110  a thread tells nobody
            await asyncio.sleep(LOOK_S)
        self._sender.give_up()
        if left := len(self._queue):
            self._queue.clear()
            self._count(DROPPED, left)
