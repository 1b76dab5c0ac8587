"""What all links of a process share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from protos.pubsub import Have
from services.kit.metrics import Metrics
from services.kit.session import Peer
from services.pubsub import measures
from services.pubsub.links.traces import LinkTraces
from services.pubsub.service import PubsubService
from services.pubsub.settings import LinkSettings
from services.store import StoreError
from services.store.log import Replica

log = logging.getLogger(__name__)

CLONE_BEATS = 4  # two incarnations of one store for so long: they are two stores


class LinkStale(Exception):
    """The link must begin anew: what was said on it is not true any more."""


class LinkHub:
    def __init__(self, service: PubsubService, metrics: Metrics) -> None:
        self.service = service
        self.settings: LinkSettings = service.settings.link
        self.replica = Replica(service.log)
        self.traces = LinkTraces(service.store.trace_propagation)
        edge = metrics.edge
        self.following = metrics.gauge(measures.FOLLOWING).labels(edge)
        self.down = metrics.gauge(measures.DOWN).labels(edge)
        self.serving = metrics.gauge(measures.SERVING).labels(edge)
        self.taken = metrics.counter(measures.TAKEN).labels(edge)
        self.missing = metrics.counter(measures.MISSING).labels(edge)
        self.local_errors = metrics.local_errors
        self._followed: dict[bytes, Have] = {}  # store -> what it said to the link that has the lease
        self._told: set[str] = set()
        self._clones: dict[bytes, float] = {}  # store -> since when it has been known by two incarnations
        self._errands: set[asyncio.Task[None]] = set()

    def let_go(self, work: Coroutine[Any, Any, None]) -> None:
        """Gives a lease back when the connection has gone already."""
        task = asyncio.ensure_future(self._quietly(work))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(StoreError):  # then it runs out of itself
            await work

    async def close(self) -> None:
        await asyncio.gather(*self._errands, return_exceptions=True)

    def follows(self, peer: Have) -> None:
        """A link of this process has the lease of this neighbour."""
        self._followed[peer.store] = peer

    def follows_no_more(self, peer: Have) -> None:
        """That link has ended, or never came so far; a newer one may have the lease already."""
        if self._followed.get(peer.store) is peer:
            del self._followed[peer.store]

    def tell_clone(self, peer: Peer, have: Have, now: float) -> None:
        """Once: only one of two stores with the same id can be followed, and they are not the same.

        A store whose server was another one for a moment is known by two incarnations too, until all its links have
        begun anew: so it has to last.
        """
        followed = self._followed.get(have.store)
        if followed is None or followed.incarnation == have.incarnation:
            self._clones.pop(have.store, None)
        elif now - self._clones.setdefault(have.store, now) > CLONE_BEATS * self.settings.beat_s:
            self._clones[have.store] = float("inf")
            fields = {"action": "link_to_clone", "peer": str(peer), "store": have.store.decode()}
            text = "%s has the id of another store, which is followed: a copy needs an id of its own"
            log.error(text, peer, extra=fields)

    def tell_same_store(self, peer: Peer, store: bytes) -> None:
        """Once for each address: whoever named it will try again and again, each time from another port."""
        if peer.address not in self._told:
            self._told.add(peer.address)
            fields = {"action": "link_to_itself", "peer": str(peer), "store": store.decode()}
            log.warning("the neighbour %s is on the same store: no link is needed", peer, extra=fields)
