"""Sweep over all resources every minute, for missed events and changes in the store.

EndpointSlices of other releases are listed more often instead of watched: a watch there would cover all kinds.
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

JITTER = 0.1  # of the interval, in both directions
NEIGHBOURS_S = 10.0  # between two lists of the EndpointSlices of other releases
RETRY_S = 2.0  # after a failed list
SELECTORS = {Kind.SLICE: f"{DISCOVER}=true"}
STUCK = 3  # intervals without a sweep, and
SLOW_S = 60.0  # for a slow one


class Sweep:
    """The periodic sweep. `trouble` says what could not be listed in the last one; None if all could."""

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
        self._unlisted = ""  # the last error of these lists
        self.trouble: str | None = "nothing has been listed yet"

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            pause_s = self._interval_s * random.uniform(1 - JITTER, 1 + JITTER)
            await asyncio.sleep(pause_s if self.trouble is None else min(RETRY_S, pause_s))
            await self._sweep()

    async def follow_neighbours(self) -> None:
        """List EndpointSlices of other releases until cancelled."""
        while self._control.discovered:
            await self._list_neighbours()
            await asyncio.sleep(NEIGHBOURS_S)

    async def _list_neighbours(self) -> None:
        """List them and reconcile the peers after a change. Failures do not affect the operator's readiness."""
        troubles = []
        before = dict(self._neighbours)
        for namespace in self._control.discovered:
            try:
                self._neighbours[namespace] = await self._list(Kind.SLICE, namespace)
            except ApiError as error:
                text = f"{Kind.SLICE} of {namespace} cannot be listed; peers discovered there stay as they are: {error}"
                troubles.append(text)
        if self._neighbours != before:
            self._control.work.add(ALL)
        trouble = "; ".join(troubles)
        if trouble and trouble != self._unlisted:
            log.warning("%s", trouble, extra={"action": "neighbours_not_listed"})
        self._unlisted = trouble

    async def first(self) -> None:
        """Sweep until one list has succeeded. Others stay untouched until they are listed (`Mirror.knows`)."""
        await self._sweep()
        while not self._control.mirror.knows_something:
            await asyncio.sleep(RETRY_S)
            await self._sweep()

    def stuck(self) -> str | None:
        """Return why the process is not alive, or None. An unreachable API server is no reason."""
        silent_s = self._clock() - self._last
        return f"no sweep for {silent_s:.0f} s" if silent_s > STUCK * self._interval_s + SLOW_S else None

    async def _sweep(self) -> None:
        """Sweep once. Each kind and namespace is listed independently of failures of others."""
        began = self._clock()
        troubles = []
        for kind in Kind:
            for namespace in self._control.watched or ("",):
                try:
                    await self._list(kind, namespace)
                except ApiError as error:
                    troubles.append(f"{kind} of {namespace or 'all namespaces'} cannot be listed: {error}")
        self._report("; ".join(troubles) or None)
        self._control.reconcile_all()
        self._last = self._clock()
        self._control.metrics.sweep_s.set(self._last - began)

    async def _list(self, kind: Kind, namespace: str) -> list[Resource]:
        since = time.monotonic()
        bodies = self._api.list(kind, namespace, SELECTORS.get(kind, ""))
        found = [Resource.read(kind, body) async for body in bodies]
        self._control.on_list(kind, namespace, found, since)
        return found

    def _report(self, trouble: str | None) -> None:
        self._control.metrics.sweeps.labels("done" if trouble is None else "failed").inc()
        if trouble is not None and trouble != self.trouble:
            log.warning("%s", trouble, extra={"action": "list_failed"})
        self.trouble = trouble
