"""Hold what all links of a process share: counters, the followed neighbours, and what was logged about them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from protos.pubsub import Have
from services.kit.session import Peer
from services.pubsub import measures
from services.pubsub.links.trace_propagation import LinkTraces
from services.pubsub.service import PubsubService
from services.pubsub.settings import LinkSettings
from services.store import StoreError
from services.store.log import Replica

log = logging.getLogger(__name__)

CLONE_BEATS = 4  # two incarnations of one store id for this long are two stores


class LinkStale(Exception):
    """The link must be set up again: what was sent on it is no longer true."""


class LinkHub:
    """The links of a process."""

    def __init__(self, service: PubsubService) -> None:
        self.service = service
        self.settings: LinkSettings = service.settings.link
        self.replica = Replica(service.log)
        self.traces = LinkTraces(service.store.trace_propagation)
        metrics, edge = service.metrics, service.metrics.edge
        self.following = metrics.gauge(measures.FOLLOWING).labels(edge)
        self.down = metrics.gauge(measures.DOWN).labels(edge)
        self.serving = metrics.gauge(measures.SERVING).labels(edge)
        self.taken = metrics.counter(measures.TAKEN).labels(edge)
        self.missing = metrics.counter(measures.MISSING).labels(edge)
        self.local_errors = metrics.local_errors
        self._followed: dict[bytes, Have] = {}  # store -> its greeting on the link that has the lease
        self._logged: set[str] = set()
        self._clones: dict[bytes, float] = {}  # store -> since when two incarnations are known
        self._releases: set[asyncio.Task[None]] = set()

    def release(self, work: Coroutine[Any, Any, None]) -> None:
        """Release a lease in the background, as its connection has closed."""
        task = asyncio.ensure_future(self._quietly(work))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(StoreError):  # then the lease expires
            await work

    async def close(self) -> None:
        """Wait until all leases are released."""
        await asyncio.gather(*self._releases, return_exceptions=True)

    def follows(self, peer: Have) -> None:
        """Note that a link of this process has the lease of this neighbour."""
        self._followed[peer.store] = peer

    def follows_no_more(self, peer: Have) -> None:
        """Note that the link has ended; a newer one may have the lease already."""
        if self._followed.get(peer.store) is peer:
            del self._followed[peer.store]

    def warn_clone(self, peer: Peer, have: Have, now: float) -> None:
        """Log once that two different stores have the same id; only one of them can be followed.

        After a failover a store has two incarnations, too, until all its links are set up again, so only a lasting
        state is reported.
        """
        followed = self._followed.get(have.store)
        if followed is None or followed.incarnation == have.incarnation:
            self._clones.pop(have.store, None)
        elif now - self._clones.setdefault(have.store, now) > CLONE_BEATS * self.settings.beat_s:
            self._clones[have.store] = float("inf")
            fields = {"action": "link_to_clone", "peer": str(peer), "store": have.store.decode()}
            text = "neighbour %s is not followed: another store has the same id; a copied store needs an id of its own"
            log.error(text, peer, extra=fields)

    def warn_same_store(self, peer: Peer, store: bytes) -> None:
        """Log once for each address that a neighbour is on the same store; it dials again and again."""
        if peer.address not in self._logged:
            self._logged.add(peer.address)
            fields = {"action": "link_to_itself", "peer": str(peer), "store": store.decode()}
            text = "neighbour %s is on the same store, no link is needed: remove it from the neighbours"
            log.warning(text, peer, extra=fields)
