"""Peer documents in the store, as this process knows them: read again when one changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.kit.metrics import Metrics
from services.rqp.jobs import end, job
from services.store import Store, StoreError
from services.store.peer import Peer, PeerSpec, Unreadable

log = logging.getLogger(__name__)

LOOK_S = 30.0  # should a notice be lost
AGAIN_S = 1.0


class Registered:
    """`peers`: specs by name, of all protocols. `on_change`: who is told when they are others."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self.peers: dict[str, PeerSpec] = {}
        self.on_change: list[Callable[[], None]] = []
        self._unreadable: set[Unreadable] = set()  # told once
        self._store = store
        self._metrics = metrics
        self._stale = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._store.peers.watch(self._told)
        self._task = job(self._follow, "peers in the store", self._metrics)

    async def close(self) -> None:
        await end(self._task)

    def _told(self, _name: str) -> None:
        self._stale.set()

    async def _follow(self) -> None:
        while True:
            self._stale.clear()
            pause_s = LOOK_S if await self._read() else AGAIN_S
            try:
                async with asyncio.timeout(pause_s):
                    await self._stale.wait()
            except TimeoutError:
                continue

    async def _read(self) -> bool:
        """False if the store could not be asked."""
        try:
            found = await self._store.peers.all()
        except StoreError as error:
            log.debug("the peers cannot be read: %s", error, extra={"action": "peers_unread"})
            return False
        self._complain({one for one in found if isinstance(one, Unreadable)})
        peers = {one.name: one.spec for one in found if isinstance(one, Peer)}
        if peers != self.peers:
            self.peers = peers
            for tell in self.on_change:
                tell()
        return True

    def _complain(self, unreadable: set[Unreadable]) -> None:
        for one in unreadable - self._unreadable:
            fields = {"action": "peer_unreadable", "peer_name": one.name}
            log.warning(
                "peer %s is left out, its document cannot be read: %s", one.name, one.problem, extra=fields
            )
        self._unreadable = unreadable
