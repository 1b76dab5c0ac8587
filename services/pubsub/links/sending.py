"""The neighbour follows us: what it does not hold is sent to it, in the order of our log (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

import asyncio
import logging

from protos import pubsub
from services.kit.session import Wire
from services.pubsub.fanout import before
from services.pubsub.links.held import NONE, from_wire, lacking
from services.pubsub.links.hub import LinkHub
from services.store import StoreError
from services.store.log import START, Entry, Place, parse_place
from services.store.replica import Held, LogState

log = logging.getLogger(__name__)

ROOM_BYTES = 256 << 10  # less than this waiting: more is sent
PAUSE_S = 0.005  # between two looks whether there is room
AGAIN_S = 0.5


class Sender:
    """`place`: everything of our log up to there has been sent, or the neighbour had it."""

    def __init__(self, hub: LinkHub, wire: Wire, peer: pubsub.Have, wish: pubsub.Follow) -> None:
        self.place = START
        self._hub = hub
        self._wire = wire
        self._peer = peer
        self._wish = wish
        self._held: Held = from_wire(wish.held)  # by the neighbour: as it said, and what has passed since
        self._grown = asyncio.Event()

    def holds(self, store: bytes, incarnation: bytes, first: int, last: int) -> None:
        """The neighbour has these: it sent them, or they were sent to it."""
        origin = (store, incarnation)
        self._held[origin] = self._held.get(origin, NONE).add(first, last)

    async def run(self) -> None:
        """Until it is cancelled."""
        service = self._hub.service
        feed = service.feed
        assert feed is not None
        feed.watchers.append(self._grown.set)
        self._hub.serving.inc()
        try:
            await self._begin()
            while True:
                self._grown.clear()
                try:
                    await self._send_all()
                except StoreError as error:
                    log.info("the log cannot be read: %s", error, extra={"action": "log_unread"})
                    await asyncio.sleep(AGAIN_S)
                else:
                    await self._grown.wait()
        finally:
            feed.watchers.remove(self._grown.set)
            self._hub.serving.dec()

    async def _begin(self) -> None:
        while True:
            try:
                state = await self._hub.replica.state()
            except StoreError:
                await asyncio.sleep(AGAIN_S)
                continue
            self.place = self._first_place(state)
            self._send_gaps(state)
            return

    def _first_place(self, state: LogState) -> Place:
        """Where the neighbour says that it has been sent everything before, if that can be."""
        if self._wish.position is None:
            return START
        place = parse_place(self._wish.position)
        return place if place <= state.head else START

    def _send_gaps(self, state: LogState) -> None:
        """What is trimmed and the neighbour lacks cannot be had from us any more (4.5)."""
        for (store, incarnation), (first, last) in lacking(self._held, state.gone):
            self._wire.write(pubsub.encode_gap(store, incarnation, first, last))
            self.holds(store, incarnation, first, last)

    async def _send_all(self) -> None:
        """Up to the end of the log as far as this process has followed it. Raises StoreError."""
        service = self._hub.service
        while (until := service.fanout.place) is not None and self.place < until:
            entries = service.recent.after(self.place)
            if entries is None:
                entries = await service.log.read(self.place, until)
            if not entries or before(entries[0]).serial > self.place.serial:
                self._send_gaps(await self._hub.replica.state())  # trimmed before it was sent
            for entry in entries:
                await self._room()
                self._send(entry)
            self.place = entries[-1].place if entries else until

    def _send(self, entry: Entry) -> None:
        store, _, incarnation = entry.origin.partition(b" ")
        self.place = before(entry)
        if (store, incarnation) == (self._peer.store, self._peer.incarnation):
            return  # its own
        last = entry.first + entry.messages - 1
        held = self._held.get((store, incarnation), NONE)
        if held.covers(entry.first, last):
            return
        for first, end in NONE.add(entry.first, last).minus(held).spans:
            block = _lines(entry, first, end)
            self._wire.write(pubsub.encode_entries(store, incarnation, first, block, entry.bridged))
        self.holds(store, incarnation, entry.first, last)

    async def _room(self) -> None:
        while self._wire.backlog() > ROOM_BYTES:  # noqa: ASYNC110  nobody tells of bytes that have left
            await asyncio.sleep(PAUSE_S)


def _lines(entry: Entry, first: int, last: int) -> bytes:
    """The lines of an entry that have these numbers."""
    if first == entry.first and last == entry.first + entry.messages - 1:
        return entry.block
    lines = entry.block.splitlines(keepends=True)
    return b"".join(lines[first - entry.first : last - entry.first + 1])
