"""Decline answers that are not taken, so that their receivers need not wait for T_WAIT2 (rqp_cast.md 3.3)."""

from __future__ import annotations

import asyncio
import contextlib

from protos.rqp_cast import Offer
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports import connections
from services.rqp.cast.settings import CastSettings

MAX_DECLINED = 64  # at once; further receivers wait for T_WAIT2


class Declines:
    """Empty connections to the accept_port of listed machines."""

    def __init__(self, settings: CastSettings, machines: Machines) -> None:
        self._settings = settings
        self._machines = machines
        self._running: set[asyncio.Task[None]] = set()

    def decline(self, offer: Offer) -> None:
        """Decline an answer in the background, if its machine's options say so."""
        if len(self._running) < MAX_DECLINED and self._machines.options(offer.source).decline:
            task = asyncio.create_task(self._connect(offer))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Cancel all of them."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _connect(self, offer: Offer) -> None:
        settings = self._settings
        place = (offer.source, offer.accept_port)
        with contextlib.suppress(OSError):  # the receiver has stopped waiting
            (await connections.connected(settings.host, *place, settings.connect_timeout_s)).close()
