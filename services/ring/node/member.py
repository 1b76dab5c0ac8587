"""A node as the edge runs it: its station, what it tells of itself, and whether its store can be used (ring.md 4.7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from protos.ring import Limits, Node
from services.kit.net import Dialler
from services.kit.readiness import Readiness
from services.kit.session import Session, Wire
from services.ring.node.board import Notice
from services.ring.node.figures import Figures
from services.ring.node.identity import Identity
from services.ring.node.links.station import Station
from services.ring.node.outgoing.passage import Arrivals, Departures
from services.ring.service import RingService
from services.store.known_peers import KnownPeers
from services.store.model import PeerProtocol

log = logging.getLogger(__name__)

WATCH_S = 0.1
AGAIN_S = 1.0  # after a fault of ours


class Member:
    """Made in the loop that it works in."""

    def __init__(
        self,
        service: RingService,
        identity: Identity,
        dialler: Dialler,
        arrivals: Arrivals,
        departures: Departures,
        readiness: Readiness,
        has_namesake: Callable[[], bool] = lambda: False,
    ) -> None:
        """readiness: what the node needs to be in a ring. has_namesake: whether another process is the node of this
        name."""
        settings = service.settings.node
        node = Node(identity.name, settings.group, identity.service, settings.times.times())
        limits = Limits(request_timeout_s=service.settings.request_timeout_s)
        self.station = Station(
            node, identity.service, settings, limits, Figures(service.metrics), dialler, arrivals, departures
        )
        self._service = service
        self._identity = identity
        self._readiness = readiness
        self._trouble_since: float | None = None
        self.peers = KnownPeers(service.store, service.metrics.local_errors.inc)
        self.peers.on_change.append(self._follow_peers)
        self._notice = Notice(service, self.station, identity.place, readiness, has_namesake)
        self._jobs: list[asyncio.Task[None]] = []

    def session(self, wire: Wire) -> Session:
        """The listener's."""
        return self.station.session(wire)

    def document(self) -> dict[str, Any]:
        """What it tells of itself."""
        return self._notice.document()

    def start(self) -> None:
        """Raises SettingsError if beacons cannot be heard."""
        self.station.start()
        self.peers.start()
        for work in (self._watch, self._notice.keep_writing):
            self._jobs.append(asyncio.create_task(self._keep_doing(work), name=f"ring {work.__name__}"))

    async def stop_taking(self) -> None:
        await self.station.stop_taking()

    def _follow_peers(self) -> None:
        self.station.follow(self.peers.addresses(PeerProtocol.RING))

    async def close(self) -> None:
        await self.peers.close()
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self.station.close()
        await self._notice.remove()
        self._identity.close()

    async def _watch(self) -> None:
        while True:
            self._look(self.station.now())
            self.station.tick()
            await asyncio.sleep(WATCH_S)

    def _look(self, now: float) -> None:
        """The store may be away for as long as requests wait for it: a connection made anew breaks no link."""
        why = self._readiness.unready()
        if why is None:
            self._trouble_since = None
            self.station.store_back()
            return
        if self._trouble_since is None:
            self._trouble_since = now
        if now - self._trouble_since >= self._service.settings.store.patience_s:
            self.station.store_away(why)

    async def _keep_doing(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception as error:
                log.error("a node's work failed: %r", error, exc_info=error, extra={"action": "job_failed"})
                self._service.metrics.local_errors.inc()
                await asyncio.sleep(AGAIN_S)
