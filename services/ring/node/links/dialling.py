"""The attempt to reach a successor: one at a time, given up when the node wants it no more (ring.md 3.6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from protos.ring import Dial
from services.kit.net import NO_SESSION, Dialler
from services.kit.session import Session, Wire
from services.ring.node.discovery import reach
from services.ring.node.figures import Figures
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)


class Attempt:
    """The one under way is `Dialling`'s; any other has been given up."""

    __slots__ = ("task", "where")

    def __init__(self, where: Dial) -> None:
        self.where = where
        self.task: asyncio.Task[None] | None = None


class Dialling:
    """`reached` is called with the connection, or `failed`; neither once it was given up."""

    def __init__(
        self,
        dialler: Dialler,
        settings: NodeSettings,
        figures: Figures,
        reached: Callable[[Wire], Session],
        failed: Callable[[], None],
    ) -> None:
        self._dialler = dialler
        self._settings = settings
        self._figures = figures
        self._reached = reached
        self._failed = failed
        self._attempt: Attempt | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, where: Dial) -> None:
        self._attempt = attempt = Attempt(where)
        attempt.task = task = asyncio.create_task(self._reach(attempt), name=f"dial {where.node!r}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def give_up(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.task is not None:
            attempt.task.cancel()

    async def close(self) -> None:
        self.give_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _reach(self, attempt: Attempt) -> None:
        def session(wire: Wire) -> Session:
            return self._open(attempt, wire)

        allow, timeout_s = self._settings.allow, self._settings.dial.connect_timeout_s
        try:
            await reach.connect(self._dialler, allow, attempt.where, session, timeout_s)
        except OSError as error:
            if attempt is not self._attempt:
                return
            self._attempt = None
            self._figures.dialled("not_allowed" if isinstance(error, reach.NotAllowed) else "failed")
            node = attempt.where.node.decode("utf-8", "backslashreplace")
            log.info("%s cannot be reached: %s", node, error, extra={"action": "ring_dial", "node": node})
            self._failed()

    def _open(self, attempt: Attempt, wire: Wire) -> Session:
        if attempt is not self._attempt:
            wire.abort()
            return NO_SESSION
        self._attempt = None
        self._figures.dialled("connected")
        return self._reached(wire)
