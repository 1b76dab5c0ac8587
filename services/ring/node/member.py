"""A node as the edge runs it: its links, its status, and whether it can use the store (ring.md 4.7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from protos.ring import Limits, Node
from services.kit.net import Dialler
from services.kit.readiness import Readiness
from services.ring.node.identity import Identity
from services.ring.node.links.station import Station
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.outgoing.user_flow import UserSink, UserSource
from services.ring.node.status import StatusPublisher
from services.ring.service import RingService
from services.store.known_peers import KnownPeers
from services.store.model import PeerProtocol

log = logging.getLogger(__name__)

WATCH_S = 0.1
AGAIN_S = 1.0  # after an internal error


class Member:
    """A node in a ring; create it in the event loop that it runs in."""

    def __init__(
        self,
        service: RingService,
        identity: Identity,
        dialler: Dialler,
        user_sink: UserSink,
        user_source: UserSource,
        readiness: Readiness,
        has_duplicate_name: Callable[[], bool] = lambda: False,
    ) -> None:
        """readiness: what the node needs to be in a ring.

        has_duplicate_name: whether another process is the node of this name.
        """
        settings = service.settings.node
        node = Node(identity.name, settings.group, identity.service, settings.times.times())
        limits = Limits(request_timeout_s=service.settings.request_timeout_s)
        self.station = Station(
            node,
            identity.service,
            settings,
            limits,
            NodeMetrics(service.metrics),
            dialler,
            user_sink,
            user_source,
        )
        self._service = service
        self._identity = identity
        self._readiness = readiness
        self._unready_since: float | None = None
        self.peers = KnownPeers(service.store, service.metrics.local_errors.inc)
        self.peers.on_change.append(self._follow_peers)
        self.status = StatusPublisher(service, self.station, identity.place, readiness, has_duplicate_name)
        self._jobs: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Open the beacon sockets and start the jobs. Raises SettingsError if a beacon address cannot be bound."""
        self.station.start()
        self.peers.start()
        for work in (self._watch, self.status.keep_writing):
            self._jobs.append(asyncio.create_task(self._keep_doing(work), name=f"ring {work.__name__}"))

    def _follow_peers(self) -> None:
        self.station.follow(self.peers.addresses(PeerProtocol.RING))

    async def close(self) -> None:
        """Leave the ring, stop all jobs and remove the status from the store."""
        await self.peers.close()
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self.station.close()
        await self.status.remove()
        self._identity.close()

    async def _watch(self) -> None:
        while True:
            self._check_store(self.station.now())
            self.station.tick()
            await asyncio.sleep(WATCH_S)

    def _check_store(self, now: float) -> None:
        """Leave the ring if the store has been unavailable for `patience_s`, and return once it is back."""
        why = self._readiness.unready()
        if why is None:
            self._unready_since = None
            self.station.store_back()
            return
        if self._unready_since is None:
            self._unready_since = now
        if now - self._unready_since >= self._service.settings.store.patience_s:
            self.station.store_away(why)

    async def _keep_doing(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception as error:
                log.error(
                    "internal error; job retried: %r",
                    error,
                    exc_info=error,
                    extra={"action": "job_failed"},
                )
                self._service.metrics.local_errors.inc()
                await asyncio.sleep(AGAIN_S)
