"""Dials the neighbours that the settings and the store's Peers name, again and again (pubsub.md 4.1, 4.3)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from services.kit.net import Dialler
from services.kit.session import Session, Wire
from services.pubsub.links.hub import LinkHub
from services.pubsub.links.session import LinkSession
from services.pubsub.settings import LINK_PORT, parse_address
from services.store.model import split_address

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
SAME_STORE_PAUSE_S = 60.0  # a name may come to mean another server
MOST = 1000  # of the store's; those of the settings are never left out


class Endpoint(NamedTuple):
    """A server that is dialled."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(address: str) -> Endpoint:
    """Of a Peer, whose port may be left out."""
    host, port = split_address(address)
    return Endpoint(host, LINK_PORT if port is None else port)


@dataclass(slots=True)
class Neighbour:
    """One that is named."""

    task: asyncio.Task[None] | None = None
    link: LinkSession | None = None  # while there is one
    is_ours: bool = False  # on the same store, as was last heard: no link is needed

    @property
    def is_down(self) -> bool:
        link = self.link
        return not self.is_ours and (link is None or not link.has_met or link.ended.is_set())


class Neighbours:
    """Each is dialled by a task of its own, for as long as anybody names it."""

    def __init__(self, hub: LinkHub, dialler: Dialler, addresses: tuple[str, ...]) -> None:
        """addresses: of the settings."""
        self._hub = hub
        self._dialler = dialler
        self._said = tuple(dict.fromkeys(Endpoint(*parse_address(address)) for address in addresses))
        self._dialled: dict[Endpoint, Neighbour] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._left_out = 0  # as it was told
        self._is_closed = False

    def start(self) -> None:
        self.follow(())

    def follow(self, addresses: Iterable[str]) -> None:
        """Those of the settings and these from now on: a new one is dialled, one that is gone has its link closed."""
        if self._is_closed:
            return
        named = dict.fromkeys((*self._said, *map(place_of, addresses)))
        wanted = list(named)[: len(self._said) + MOST]
        self._tell_left_out(len(named) - len(wanted))
        for place in self._dialled.keys() - wanted:
            if (link := self._give_up(place).link) is not None:
                link.close()
        for place in wanted:
            if place not in self._dialled:
                self._dialled[place] = dialled = Neighbour()
                linking = self._keep_linked(place, dialled)
                dialled.task = asyncio.create_task(linking, name=f"link to {place}")
        self._tell_down()

    def _tell_down(self) -> None:
        self._hub.down.set(sum(dialled.is_down for dialled in self._dialled.values()))

    def _give_up(self, place: Endpoint) -> Neighbour:
        """It is not dialled any more; a link that there is goes on."""
        dialled = self._dialled.pop(place)
        assert dialled.task is not None
        self._ending.add(dialled.task)
        dialled.task.add_done_callback(self._ending.discard)
        dialled.task.cancel()
        return dialled

    def _tell_left_out(self, left_out: int) -> None:
        if left_out > self._left_out:
            fields = {"action": "neighbours_left_out", "count": left_out}
            log.warning("%d neighbours are not dialled: %d at most are", left_out, MOST, extra=fields)
        self._left_out = left_out

    async def close(self) -> None:
        """Nobody is dialled any more; links that there are end with their connections."""
        self._is_closed = True
        for place in tuple(self._dialled):
            self._give_up(place)
        self._tell_down()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _keep_linked(self, place: Endpoint, dialled: Neighbour) -> None:
        pause_s, said = FIRST_PAUSE_S, ""
        now = asyncio.get_running_loop().time
        while True:
            dialled.link, began = None, now()
            trouble, link = await self._link(place, dialled)
            self._tell_down()
            if trouble not in ("", said):
                fields = {"action": "link_down", "neighbour": str(place)}
                log.warning("no link to the neighbour %s: %s", place, trouble, extra=fields)
            said = trouble
            if link is not None and link.same_store:
                pause_s = SAME_STORE_PAUSE_S
            elif link is not None and link.has_met and now() - began > self._hub.settings.reconnect_s:
                pause_s = FIRST_PAUSE_S  # one that breaks as soon as it is there is not dialled all the time
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, self._hub.settings.reconnect_s)

    async def _link(self, place: Endpoint, dialled: Neighbour) -> tuple[str, LinkSession | None]:
        """Until it has ended; why there was none, or ''."""
        try:
            await self._dialler.connect(*place, partial(self._session, dialled))
        except OSError as error:
            return str(error), dialled.link
        assert dialled.link is not None
        await dialled.link.ended.wait()
        why = "" if dialled.link.has_met else "the connection ended before it was said who is there"
        return why, dialled.link

    def _session(self, dialled: Neighbour, wire: Wire) -> Session:
        dialled.link = link = LinkSession(self._hub, wire, partial(self._met, dialled))
        return link

    def _met(self, dialled: Neighbour) -> None:
        assert dialled.link is not None
        dialled.is_ours = dialled.link.same_store
        self._tell_down()
