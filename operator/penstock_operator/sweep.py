"""The pass over everything, every minute: what no watch told, and what changed in the store by itself.

Other releases' EndpointSlices are listed more often, as nothing watches them: a watch would be of all kinds there.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.cluster.resources import Kind, Resource
from penstock_operator.control import Control
from penstock_operator.peers.discovery import DISCOVER
from penstock_operator.peers.peers import ALL

log = logging.getLogger(__name__)

JITTER = 0.1  # of the interval, to either side
NEIGHBOURS_S = 10.0  # between two lists of the EndpointSlices of other releases
AGAIN_S = 2.0  # when the API server did not answer
SELECTORS = {Kind.SLICE: f"{DISCOVER}=true"}
STUCK = 3  # intervals without a pass, and
SLOW_S = 60.0  # for one that takes its time


class Sweep:
    """`trouble` says what could not be listed in the last pass; None if all could."""

    def __init__(
        self,
        control: Control,
        api: Api,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._control = control
        self._api = api
        self._interval_s = interval_s
        self._clock = clock
        self._last = clock()
        self._neighbours: dict[str, list[Resource]] = {}  # by namespace, as last listed
        self._unlisted = ""  # what of them could not be listed
        self.trouble: str | None = "nothing has been listed yet"

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            pause_s = self._interval_s * random.uniform(1 - JITTER, 1 + JITTER)
            await asyncio.sleep(pause_s if self.trouble is None else min(AGAIN_S, pause_s))
            await self._pass()

    async def follow_neighbours(self) -> None:
        """List EndpointSlices where other releases are, until cancelled."""
        while self._control.discovered:
            await self._list_neighbours()
            await asyncio.sleep(NEIGHBOURS_S)

    async def _list_neighbours(self) -> None:
        """Look at all peers if anything differs. A namespace that cannot be listed leaves the operator ready."""
        troubles = []
        before = dict(self._neighbours)
        for namespace in self._control.discovered:
            try:
                self._neighbours[namespace] = await self._list(Kind.SLICE, namespace)
            except ApiError as error:
                troubles.append(
                    f"{Kind.SLICE} of {namespace} cannot be listed, so peers discovered there stay: {error}"
                )
        if self._neighbours != before:
            self._control.work.add(ALL)
        trouble = "; ".join(troubles)
        if trouble and trouble != self._unlisted:
            log.warning("%s", trouble, extra={"action": "neighbours_not_listed"})
        self._unlisted = trouble

    async def first(self) -> None:
        """Returns when something is known. What is not is touched by nobody (`Mirror.knows`)."""
        await self._pass()
        while not self._control.mirror.knows_something:
            await asyncio.sleep(AGAIN_S)
            await self._pass()

    def stuck(self) -> str | None:
        """Why the process had better be killed. An API server that is away is no reason."""
        silent_s = self._clock() - self._last
        return f"no pass for {silent_s:.0f} s" if silent_s > STUCK * self._interval_s + SLOW_S else None

    async def _pass(self) -> None:
        """Each kind in each namespace by itself: one that cannot be listed holds up no other."""
        began = self._clock()
        troubles = []
        for kind in Kind:
            for namespace in self._control.watched or ("",):
                try:
                    await self._list(kind, namespace)
                except ApiError as error:
                    troubles.append(f"{kind} of {namespace or 'all namespaces'} cannot be listed: {error}")
        self._tell("; ".join(troubles) or None)
        self._control.look_at_all()
        self._last = self._clock()
        self._control.metrics.sweep_s.set(self._last - began)

    async def _list(self, kind: Kind, namespace: str) -> list[Resource]:
        since = time.monotonic()
        bodies = self._api.list(kind, namespace, SELECTORS.get(kind, ""))
        found = [Resource.read(kind, body) async for body in bodies]
        self._control.listed(kind, namespace, found, since)
        return found

    def _tell(self, trouble: str | None) -> None:
        self._control.metrics.sweeps.labels("done" if trouble is None else "failed").inc()
        if trouble is not None and trouble != self.trouble:
            log.warning("%s", trouble, extra={"action": "list_failed"})
        self.trouble = trouble
