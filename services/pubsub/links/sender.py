"""The neighbour follows us: what it does not hold is sent to it, in the order of our log (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from protos import pubsub
from services.kit.session import Wire
from services.pubsub.fanout import before
from services.pubsub.links.held import NONE, from_wire, lacking, united
from services.pubsub.links.hub import LinkHub, LinkStale
from services.store import StoreError
from services.store.log import START, Entry, Held, LogState, Origin, Place, parse_place
from services.store.model import Intervals, Span

log = logging.getLogger(__name__)

ROOM_BYTES = 256 << 10  # less than this waiting: more is sent
PAUSE_S = 0.005  # between two looks whether there is room
AGAIN_S = 0.5
FOLLOWED_S = 0.05  # how soon to look again while this process does not follow its log yet


class Sender:
    """`place`: everything of our log up to there has been sent, or the neighbour had it; None: nothing is known yet."""

    def __init__(
        self, hub: LinkHub, wire: Wire, peer: pubsub.Have, wish: pubsub.Follow, greeting: LogState
    ) -> None:
        """greeting: what this side said of itself when the link began."""
        self.place: Place | None = None
        self._hub = hub
        self._wire = wire
        self._peer = peer
        self._wish = wish
        self._greeting = greeting
        self._held: Held = from_wire(wish.held)  # by the neighbour: as it said, and what has passed since
        self._told: Held = {}  # that they are gone; should one of them come all the same, it is sent
        self._grown = asyncio.Event()
        self._gaps_due = 0.0  # when to look what is trimmed, in the loop's time

    def holds(self, store: bytes, incarnation: bytes, first: int, last: int) -> None:
        """The neighbour has these: it sent them, or they were sent to it."""
        origin = (store, incarnation)
        self._held[origin] = self._held.get(origin, NONE).add(first, last)

    async def run(self) -> None:
        """Until it is cancelled. Raises LinkStale where our log ends before what was sent of it."""
        service = self._hub.service
        feed = service.feed
        assert feed is not None
        feed.watchers.append(self._grown.set)
        self._hub.serving.inc()
        try:
            while True:
                self._grown.clear()
                try:
                    await self._send_gaps()
                    await self._send_all()
                except StoreError as error:
                    log.info("the log cannot be read: %s", error, extra={"action": "log_unread"})
                    await asyncio.sleep(AGAIN_S)
                else:
                    await self._wait()
        finally:
            feed.watchers.remove(self._grown.set)
            self._hub.serving.dec()

    async def _wait(self) -> None:
        """Until the log has grown, or gaps are due. Nobody tells of the moment from which it is followed at all."""
        is_followed = self._hub.service.fanout.place is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._hub.settings.beat_s if is_followed else FOLLOWED_S):
                await self._grown.wait()

    def _first_place(self, state: LogState) -> Place:
        """Up to where the neighbour lacks nothing: reading the whole log would cost the store its time.

        It lacks nothing of what was there at the greeting where it holds all of that, or asks for none of it; and it
        may know a place up to which it has been sent everything.
        """
        place = START
        if not lacking(self._held, self._greeting.held):
            place = self._greeting.head
        if self._wish.position is not None:
            seen = parse_place(self._wish.position)
            place = max(place, seen) if seen <= state.head else place
        return place

    async def _send_gaps(self) -> None:
        """What is trimmed and the neighbour lacks cannot be had from us any more (4.5). Raises StoreError.

        Looked at now and then: we may be trimmed under, and gaps come over other links, also of other processes. What
        is trimmed may still be in memory, or on its way there as long as this process has not followed its log so far.
        """
        now = self._wire.loop_time()
        if now < self._gaps_due:
            return
        state = await self._hub.replica.state()
        if self.place is None:
            self.place = self._first_place(state)
        if self.place > state.head:
            raise LinkStale(
                "our log went back in time: what comes now has places before those that were told"
            )
        followed = self._hub.service.fanout.place
        if followed is None or followed < state.trimmed:
            return
        self._gaps_due = now + self._hub.settings.beat_s
        known = united(self._held, self._told)
        if lacking(known, state.gone):
            self._tell_gaps(lacking(united(known, self._in_memory(self.place)), state.gone))

    def _in_memory(self, place: Place) -> Held:
        """What will be sent from there, be it trimmed or not."""
        found: dict[Origin, list[Span]] = {}
        for entry in self._hub.service.recent_entries.after(place) or ():
            store, _, incarnation = entry.origin.partition(b" ")
            found.setdefault((store, incarnation), []).append((entry.first, _last(entry)))
        return {origin: Intervals.of(spans) for origin, spans in found.items()}

    def _tell_gaps(self, gaps: Iterable[tuple[Origin, Span]]) -> None:
        for (store, incarnation), (first, last) in gaps:
            self._wire.write(pubsub.encode_gap(store, incarnation, first, last))
            told = self._told.get((store, incarnation), NONE)
            self._told[store, incarnation] = told.add(first, last)

    async def _send_all(self) -> None:
        """Up to the end of the log as far as this process has followed it. Raises StoreError."""
        service = self._hub.service
        assert self.place is not None
        while (until := service.fanout.place) is not None and self.place < until:
            entries = service.recent_entries.after(self.place)
            if entries is None:
                entries = await service.log.read(self.place, until)
            if not entries or before(entries[0]).serial != self.place.serial:
                self._gaps_due = 0.0  # trimmed before it was sent
            for entry in entries:
                await self._room()
                self._send(entry)
            self.place = entries[-1].place if entries else until

    def _send(self, entry: Entry) -> None:
        store, _, incarnation = entry.origin.partition(b" ")
        self.place = before(entry)
        if (store, incarnation) == (self._peer.store, self._peer.incarnation):
            return  # its own
        last = _last(entry)
        held = self._held.get((store, incarnation), NONE)
        if held.covers(entry.first, last):
            return
        for first, end in NONE.add(entry.first, last).minus(held).spans:
            block = _lines(entry, first, end)
            self._wire.write(pubsub.encode_entries(store, incarnation, first, block, entry.bridged))
            self._hub.traces.sent(store, incarnation, first, end, self._greeting.store, self._peer.store)
        self.holds(store, incarnation, entry.first, last)

    async def _room(self) -> None:
        while self._wire.backlog() > ROOM_BYTES:  # noqa: ASYNC110  nobody tells of bytes that have left
            await asyncio.sleep(PAUSE_S)


def _last(entry: Entry) -> int:
    return entry.first + entry.messages - 1


def _lines(entry: Entry, first: int, last: int) -> bytes:
    """The lines of an entry that have these numbers."""
    if first == entry.first and last == _last(entry):
        return entry.block
    lines = entry.block.splitlines(keepends=True)
    return b"".join(lines[first - entry.first : last - entry.first + 1])
