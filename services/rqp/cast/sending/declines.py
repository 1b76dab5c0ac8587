"""Answers that are not taken are declined, so that who gave them need not wait for T_WAIT2 (rqp_cast.md 3.3)."""

from __future__ import annotations

import asyncio
import contextlib

from protos.rqp_cast import Offer
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports import connections
from services.rqp.cast.settings import CastSettings

MAX_DECLINED = 64  # at once; whoever gave one more waits for T_WAIT2


class Declines:
    """Connections to an accept_port that end without an octet. Only for answers of machines that are listed."""

    def __init__(self, settings: CastSettings, machines: Machines) -> None:
        self._settings = settings
        self._machines = machines
        self._under_way: set[asyncio.Task[None]] = set()

    def decline(self, offer: Offer) -> None:
        if len(self._under_way) < MAX_DECLINED and self._machines.manners(offer.source).decline:
            task = asyncio.create_task(self._knock(offer))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _knock(self, offer: Offer) -> None:
        settings = self._settings
        place = (offer.source, offer.accept_port)
        with contextlib.suppress(OSError):  # nobody waits there any more
            (await connections.connected(settings.host, *place, settings.connect_timeout_s)).close()
