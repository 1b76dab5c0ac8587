"""Publish the node's status over HTTP, and in the store for `penstock ring status`."""

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

POLL_S = 0.25  # delay until a change is written
WRITE_S = 10.0  # between writes without a change: readers take a node for silent after 30 s
REMOVE_S = 1.0  # time limit on the removal
LISTED = 100  # members in a document: those heard of last

Document = dict[str, Any]


def describe(station: Station, place: tuple[str, int], trouble: str | None) -> Document:
    """Return the node's status. All times are ages in seconds, as the clocks of machines differ."""
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
    """Describe the link; `name` is None if the predecessor does not send its name, as originals do not."""
    link = station.predecessor
    if link is None:
        return None
    name = station.node.tail.name
    shown = None if name is None else decode_name(name)
    return {"name": shown, "address": str(link.peer), "since_s": round(now - link.since, 1)}


def _successor(station: Station, now: float) -> Document | None:
    link, name = station.successor, station.node.head.successor
    if link is None or name is None:
        return None
    return {"name": decode_name(name), "address": str(link.peer), "since_s": round(now - link.since, 1)}


def without_ages(value: Any) -> Any:
    """Reduce a document to what is published at once when it changes: no ages, no order of members."""
    if isinstance(value, dict):
        return {name: without_ages(inner) for name, inner in value.items() if not name.endswith("_s")}
    if isinstance(value, list):
        return sorted(map(str, map(without_ages, value)))
    return value


class StatusPublisher:
    """The node's entry in the store: written on every change and periodically, removed at the end."""

    def __init__(
        self,
        service: RingService,
        station: Station,
        place: tuple[str, int],
        readiness: Readiness,
        has_duplicate_name: Callable[[], bool],
    ) -> None:
        self._statuses = service.store.ring_nodes
        self._station = station
        self._place = place
        self._readiness = readiness
        self._has_duplicate_name = has_duplicate_name
        self._title = decode_name(station.node.name)  # the key of the entry
        self._written: Any = None
        self._due = 0.0
        self._is_failing = False  # the last write failed, which was logged

    def document(self) -> Document:
        """Return the node's status."""
        return describe(self._station, self._place, self._readiness.unready())

    async def keep_writing(self) -> None:
        """Write the status until cancelled."""
        while True:
            await self._retitle()
            document = self.document()
            now = self._station.now()
            if now >= self._due or without_ages(document) != self._written:
                await self._write(document)
            await asyncio.sleep(POLL_S)

    async def remove(self) -> None:
        """Remove the entry within REMOVE_S; otherwise readers see it expire."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(REMOVE_S):
                await self._statuses.remove(self._station.node.group, self._title)

    async def _retitle(self) -> None:
        """Use another title beside a live node of the same name: each would overwrite the other."""
        name = decode_name(self._station.node.name)
        title = f"{name} (process {os.getpid()})" if self._has_duplicate_name() else name
        if title != self._title:
            if self._title != name:  # the other node writes under the name
                await self.remove()
            self._title, self._written = title, None

    async def _write(self, document: Document) -> None:
        node = self._station.node
        try:
            await self._statuses.put(node.group, self._title, document)
        except StoreError as error:
            if not self._is_failing:
                log.info(
                    "node status is stale: %s",
                    error,
                    extra={"action": "ring_board_unwritten"},
                )
            self._is_failing = True
        else:
            self._written, self._is_failing = without_ages(document), False
            self._due = self._station.now() + WRITE_S
