"""Connect to a successor: one attempt at a time, cancelled when the node no longer wants it (ring.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from protos.ring import Dial
from services.kit.net import NO_SESSION, Dialler
from services.kit.session import Session, Wire
from services.ring import measures
from services.ring.node.discovery import tcp_connect
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)


class Dialling:
    """Calls `reached` with the connection, or `failed`; neither for an attempt that was given up."""

    def __init__(
        self,
        dialler: Dialler,
        settings: NodeSettings,
        metrics: NodeMetrics,
        reached: Callable[[Wire], Session],
        failed: Callable[[], None],
    ) -> None:
        self._dialler = dialler
        self._settings = settings
        self._metrics = metrics
        self._reached = reached
        self._failed = failed
        self._attempt: asyncio.Task[None] | None = None  # the current one; any other was given up
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, where: Dial) -> None:
        """Start an attempt."""
        self._attempt = task = asyncio.create_task(self._reach(where), name=f"dial {where.node!r}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def give_up(self) -> None:
        """Cancel the current attempt."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.cancel()

    async def close(self) -> None:
        """Cancel the current attempt and wait for all to end."""
        self.give_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reach(self, where: Dial) -> None:
        attempt = asyncio.current_task()
        allow, timeout_s = self._settings.allow, self._settings.dial.connect_timeout_s
        try:
            await tcp_connect.connect(self._dialler, allow, where, partial(self._open, attempt), timeout_s)
        except OSError as error:
            if attempt is not self._attempt:
                return
            self._attempt = None
            result = "not_allowed" if isinstance(error, tcp_connect.NotAllowed) else "failed"
            self._metrics.count(measures.DIALS, result)
            node = where.node.decode("utf-8", "backslashreplace")
            log.info("successor %s not reached: %s", node, error, extra={"action": "ring_dial", "node": node})
            self._failed()

    def _open(self, attempt: asyncio.Task[None] | None, wire: Wire) -> Session:
        if attempt is not self._attempt:
            wire.abort()
            return NO_SESSION
        self._attempt = None
        self._metrics.count(measures.DIALS, "connected")
        return self._reached(wire)
