"""Dials the neighbours that the settings name, again and again (pubsub.md 4.1, 4.3)."""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial

from services.kit.dialler import Dialler
from services.kit.session import Session, Wire
from services.pubsub.links.hub import LinkHub
from services.pubsub.links.session import LinkSession
from services.pubsub.settings import parse_address

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
SAME_STORE_PAUSE_S = 60.0  # a name may come to mean another server


class Neighbours:
    def __init__(self, hub: LinkHub, dialler: Dialler, addresses: tuple[str, ...]) -> None:
        self._hub = hub
        self._dialler = dialler
        self._addresses = addresses
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._keep_linked(address), name=f"link to {address}")
            for address in dict.fromkeys(self._addresses)
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep_linked(self, address: str) -> None:
        pause_s, said = FIRST_PAUSE_S, ""
        now = asyncio.get_running_loop().time
        while True:
            made: list[LinkSession] = []
            began = now()
            trouble = await self._link(address, made)
            if trouble not in ("", said):
                fields = {"action": "link_down", "neighbour": address}
                log.warning("no link to the neighbour %s: %s", address, trouble, extra=fields)
            said = trouble
            if made and made[0].same_store:
                pause_s = SAME_STORE_PAUSE_S
            elif made and made[0].has_met and now() - began > self._hub.settings.reconnect_s:
                pause_s = FIRST_PAUSE_S  # one that breaks as soon as it is there is not dialled all the time
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, self._hub.settings.reconnect_s)

    async def _link(self, address: str, made: list[LinkSession]) -> str:
        """Until it has ended; why there was none, or ''."""
        host, port = parse_address(address)
        try:
            await self._dialler.connect(host, port, partial(self._session, made))
        except OSError as error:
            return str(error)
        await made[0].ended.wait()
        return "" if made[0].has_met else "the connection ended before it was said who is there"

    def _session(self, made: list[LinkSession], wire: Wire) -> Session:
        made.append(LinkSession(self._hub, wire))
        return made[0]
