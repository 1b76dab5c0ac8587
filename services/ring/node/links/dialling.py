"""Connect to a successor: one attempt at a time, cancelled when the node no longer wants it (ring.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from protos.ring import Dial
from services.kit.net import NOBODY, Dialler
from services.kit.session import Session, Wire
from services.ring import measures
from services.ring.node.discovery import tcp_connect
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)


class Attempt:
    """An attempt to connect; any but the current one of `Dialling` has been given up."""

    __slots__ = ("task", "where")

    def __init__(self, where: Dial) -> None:
        self.where = where
        self.task: asyncio.Task[None] | None = None


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
        self._attempt: Attempt | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, where: Dial) -> None:
        """Start an attempt."""
        self._attempt = attempt = Attempt(where)
        attempt.task = task = asyncio.create_task(self._reach(attempt), name=f"dial {where.node!r}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def give_up(self) -> None:
        """Cancel the current attempt."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.task is not None:
            attempt.task.cancel()

    async def close(self) -> None:
        """Cancel the current attempt and wait for all to end."""
        self.give_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reach(self, attempt: Attempt) -> None:
        def session(wire: Wire) -> Session:
            return self._open(attempt, wire)

        allow, timeout_s = self._settings.allow, self._settings.dial.connect_timeout_s
        try:
            await tcp_connect.connect(self._dialler, allow, attempt.where, session, timeout_s)
        except OSError as error:
            if attempt is not self._attempt:
                return
            self._attempt = None
            result = "not_allowed" if isinstance(error, tcp_connect.NotAllowed) else "failed"
            self._metrics.count(measures.DIALS, result)
            node = attempt.where.node.decode("utf-8", "backslashreplace")
            log.info("successor %s not reached: %s", node, error, extra={"action": "ring_dial", "node": node})
            self._failed()

    def _open(self, attempt: Attempt, wire: Wire) -> Session:
        if attempt is not self._attempt:
            wire.abort()
            return NOBODY
        self._attempt = None
        self._metrics.count(measures.DIALS, "connected")
        return self._reached(wire)
