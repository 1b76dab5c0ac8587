"""The pass over everything, every minute: what no watch told, and what changed in the store by itself."""

from __future__ import annotations

import asyncio
import logging
import random
import time

from penstock_operator.api import Api, ApiError
from penstock_operator.control import Control
from penstock_operator.discovery import DISCOVER
from penstock_operator.resources import Kind, Resource

log = logging.getLogger(__name__)

JITTER = 0.1  # of the interval, to either side
AGAIN_S = 2.0  # when the API server did not answer
SELECTORS = {Kind.SLICE: f"{DISCOVER}=true"}
STUCK = 3  # intervals without a pass


class Sweep:
    def __init__(self, control: Control, api: Api, interval_s: float) -> None:
        self._control = control
        self._api = api
        self._interval_s = interval_s
        self._began = self._last = time.monotonic()
        self.trouble: str | None = "nothing has been listed yet"

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            pause_s = await self._pass()
            await asyncio.sleep(pause_s)

    async def first(self) -> None:
        """Returns when everything is known."""
        while self.trouble is not None:
            pause_s = await self._pass()
            if self.trouble is not None:
                await asyncio.sleep(pause_s)

    def stuck(self) -> str | None:
        """Why the process had better be killed. An API server that is away is no reason."""
        silent_s = time.monotonic() - self._last
        return f"no pass for {silent_s:.0f} s" if silent_s > STUCK * self._interval_s + 60 else None

    async def _pass(self) -> float:
        """How long to wait for the next one."""
        began = time.monotonic()
        metrics = self._control.metrics
        try:
            await self._list_all(began)
        except ApiError as error:
            metrics.sweeps.labels("failed").inc()
            if self.trouble != str(error):
                log.warning("the cluster cannot be listed: %s", error, extra={"action": "list_failed"})
            self.trouble = str(error) if self._last == self._began else None
            pause_s = AGAIN_S
        else:
            metrics.sweeps.labels("done").inc()
            self.trouble = None
            self._control.look_at_all()
            pause_s = self._interval_s * random.uniform(1 - JITTER, 1 + JITTER)
        self._last = time.monotonic()
        metrics.sweep_s.set(self._last - began)
        return pause_s

    async def _list_all(self, since: float) -> None:
        found: list[Resource] = []
        for kind in Kind:
            for namespace in self._control.watched or ("",):
                async for body in self._api.list(kind, namespace, SELECTORS.get(kind, "")):
                    found.append(Resource.read(kind, body))
        self._control.listed(tuple(Kind), found, since)
