"""What a node tells of itself: to whoever asks it over HTTP, and to `penstock ring status` by the store's board."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any

from services.kit.metrics import version
from services.kit.readiness import Readiness
from services.queueing import decode_name
from services.ring.node.links.station import MEMBER_S, Station
from services.ring.service import RingService
from services.store import StoreError

log = logging.getLogger(__name__)

LOOK_S = 0.25  # how soon a change is told
WRITE_S = 10.0  # how often, if nothing changes: readers take a node for silent after 30 s
REMOVE_S = 1.0  # how long the end may wait for the store
LISTED = 100  # members in a document, those heard of last

Document = dict[str, Any]


def describe(station: Station, place: tuple[str, int], trouble: str | None) -> Document:
    """All times are ages in seconds: clocks differ."""
    node, now = station.node, station.now()
    last = node.last_break
    lately = [(name, at) for name, at in node.members.items() if now - at < MEMBER_S]
    members = sorted(lately, key=lambda member: -member[1])
    return {
        "name": decode_name(node.name),
        "group": node.group,
        "address": f"{place[0]}:{place[1]}",
        "pid": os.getpid(),
        "version": version(),
        "away": trouble or ("not started yet" if node.is_away else None),
        "leader": decode_name(node.election.leader),
        "is_leader": node.election.is_leader,
        "is_led": node.is_led(now),
        "predecessor": _predecessor(station, now),
        "successor": _successor(station, now),
        "members": [
            {"name": decode_name(name), "heard_s": round(now - at, 1)} for name, at in members[:LISTED]
        ],
        "member_count": len(members),
        "breaks": node.breaks,
        "last_break": None
        if last is None
        else {"side": last.side, "why": last.why, "ago_s": round(now - last.at, 1)},
    }


def _predecessor(station: Station, now: float) -> Document | None:
    """`name` is None of one that has not said it, as originals do not."""
    link = station.predecessor
    if link is None:
        return None
    name = station.node.tail.name
    told = None if name is None else decode_name(name)
    return {"name": told, "address": str(link.peer), "since_s": round(now - link.since, 1)}


def _successor(station: Station, now: float) -> Document | None:
    link, name = station.successor, station.node.head.successor
    if link is None or name is None:
        return None
    return {"name": decode_name(name), "address": str(link.peer), "since_s": round(now - link.since, 1)}


def shape(value: Any) -> Any:
    """What of a document is worth telling at once: all but ages, and the order of members."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items() if not name.endswith("_s")}
    if isinstance(value, list):
        return sorted(map(str, map(shape, value)))
    return value


class Notice:
    """The node's entry on the board: written on every change and now and then, taken away at the end."""

    def __init__(
        self,
        service: RingService,
        station: Station,
        place: tuple[str, int],
        readiness: Readiness,
        has_namesake: Callable[[], bool],
    ) -> None:
        self._board = service.store.ring_nodes
        self._station = station
        self._place = place
        self._readiness = readiness
        self._has_namesake = has_namesake
        self._title = decode_name(station.node.name)  # under which it stands there
        self._written: Any = None
        self._due = 0.0
        self._is_told = False  # that it cannot be written

    def document(self) -> Document:
        return describe(self._station, self._place, self._readiness.unready())

    async def keep_writing(self) -> None:
        while True:
            await self._retitle()
            document = self.document()
            now = self._station.now()
            if now >= self._due or shape(document) != self._written:
                await self._write(document)
            await asyncio.sleep(LOOK_S)

    async def remove(self) -> None:
        """If the store can do it soon; else readers see it fall silent."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(REMOVE_S):
                await self._board.remove(self._station.node.group, self._title)

    async def _retitle(self) -> None:
        """Beside a living node of the same name it has a title of its own: each would write over the other."""
        name = decode_name(self._station.node.name)
        title = f"{name} (process {os.getpid()})" if self._has_namesake() else name
        if title != self._title:
            if self._title != name:  # under the name the other one writes
                await self.remove()
            self._title, self._written = title, None

    async def _write(self, document: Document) -> None:
        node = self._station.node
        try:
            await self._board.put(node.group, self._title, document)
        except StoreError as error:
            if not self._is_told:
                log.info("the board is not written: %s", error, extra={"action": "ring_board_unwritten"})
            self._is_told = True
        else:
            self._written, self._is_told = shape(document), False
            self._due = self._station.now() + WRITE_S
