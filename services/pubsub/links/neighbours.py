"""Keep links to the neighbours that the settings and the store's Peers name (pubsub.md 4.1, 4.3)."""

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
SAME_STORE_PAUSE_S = 60.0  # the name may later mean another server
MOST = 1000  # of the store's Peers; neighbours in the settings are never left out


class Endpoint(NamedTuple):
    """The address of a neighbour."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(address: str) -> Endpoint:
    """Return the endpoint of a Peer's address, whose port may be left out."""
    host, port = split_address(address)
    return Endpoint(host, LINK_PORT if port is None else port)


@dataclass(slots=True)
class Neighbour:
    """The state of one neighbour."""

    task: asyncio.Task[None] | None = None
    link: LinkSession | None = None  # while there is one
    is_same_store: bool = False  # as last reported: no link is needed

    @property
    def is_down(self) -> bool:
        """Return True if a link is needed and missing."""
        link = self.link
        return not self.is_same_store and (link is None or not link.has_met or link.ended.is_set())


class Neighbours:
    """All neighbours, each dialled by a task of its own for as long as it is configured."""

    def __init__(self, hub: LinkHub, dialler: Dialler, addresses: tuple[str, ...]) -> None:
        """addresses: of the settings."""
        self._hub = hub
        self._dialler = dialler
        self._configured = tuple(dict.fromkeys(Endpoint(*parse_address(address)) for address in addresses))
        self._neighbours: dict[Endpoint, Neighbour] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._left_out = 0  # as last logged
        self._is_closed = False

    def follow(self, addresses: Iterable[str]) -> None:
        """Keep links to these neighbours and those of the settings; dial new ones and close links to others."""
        if self._is_closed:
            return
        named = dict.fromkeys((*self._configured, *map(place_of, addresses)))
        wanted = list(named)[: len(self._configured) + MOST]
        self._warn_left_out(len(named) - len(wanted))
        for endpoint in self._neighbours.keys() - wanted:
            if (link := self._give_up(endpoint).link) is not None:
                link.close()
        for endpoint in wanted:
            if endpoint not in self._neighbours:
                self._neighbours[endpoint] = neighbour = Neighbour()
                linking = self._keep_linked(endpoint, neighbour)
                neighbour.task = asyncio.create_task(linking, name=f"link to {endpoint}")
        self._count_down()

    def _count_down(self) -> None:
        self._hub.down.set(sum(neighbour.is_down for neighbour in self._neighbours.values()))

    def _give_up(self, endpoint: Endpoint) -> Neighbour:
        """Stop dialling a neighbour; an existing link goes on."""
        neighbour = self._neighbours.pop(endpoint)
        assert neighbour.task is not None
        self._ending.add(neighbour.task)
        neighbour.task.add_done_callback(self._ending.discard)
        neighbour.task.cancel()
        return neighbour

    def _warn_left_out(self, left_out: int) -> None:
        if left_out > self._left_out:
            fields = {"action": "neighbours_left_out", "count": left_out}
            text = "%d neighbours are not dialled: more than %d Peers name text servers"
            log.warning(text, left_out, MOST, extra=fields)
        self._left_out = left_out

    async def close(self) -> None:
        """Stop dialling; existing links end with their connections."""
        self._is_closed = True
        for endpoint in tuple(self._neighbours):
            self._give_up(endpoint)
        self._count_down()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _keep_linked(self, endpoint: Endpoint, neighbour: Neighbour) -> None:
        pause_s, logged = FIRST_PAUSE_S, ""
        now = asyncio.get_running_loop().time
        while True:
            neighbour.link, began = None, now()
            trouble, link = await self._link(endpoint, neighbour)
            self._count_down()
            if trouble not in ("", logged):
                fields = {"action": "link_down", "neighbour": str(endpoint)}
                log.warning("no link to neighbour %s, will retry: %s", endpoint, trouble, extra=fields)
            logged = trouble
            if link is not None and link.same_store:
                pause_s = SAME_STORE_PAUSE_S
            elif link is not None and link.has_met and now() - began > self._hub.settings.reconnect_s:
                pause_s = FIRST_PAUSE_S  # only if it was up for a while: no dialling in a tight loop
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, self._hub.settings.reconnect_s)

    async def _link(self, endpoint: Endpoint, neighbour: Neighbour) -> tuple[str, LinkSession | None]:
        """Dial and wait until the link has ended. Return why there was none, or '', and the link."""
        try:
            await self._dialler.connect(*endpoint, partial(self._session, neighbour))
        except OSError as error:
            return str(error), neighbour.link
        assert neighbour.link is not None
        await neighbour.link.ended.wait()
        why = "" if neighbour.link.has_met else "the connection ended before both sides had greeted"
        return why, neighbour.link

    def _session(self, neighbour: Neighbour, wire: Wire) -> Session:
        neighbour.link = link = LinkSession(self._hub, wire, partial(self._met, neighbour))
        return link

    def _met(self, neighbour: Neighbour) -> None:
        assert neighbour.link is not None
        neighbour.is_same_store = neighbour.link.same_store
        self._count_down()
