"""Send to a neighbour the messages that it does not hold, in the order of the local log (pubsub.md 4.3, 4.5)."""

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

ROOM_BYTES = 256 << 10  # send more while less than this waits
PAUSE_S = 0.005  # how often to check for room
AGAIN_S = 0.5
FOLLOWED_S = 0.05  # how often to check whether this process follows its log yet


class Sender:
    """`place`: the neighbour has everything of the local log up to here; None: not known yet."""

    def __init__(
        self, hub: LinkHub, wire: Wire, peer: pubsub.Have, wish: pubsub.Follow, greeting: LogState
    ) -> None:
        """greeting: the state of the local log that was sent when the link began."""
        self.place: Place | None = None
        self._hub = hub
        self._wire = wire
        self._peer = peer
        self._wish = wish
        self._greeting = greeting
        self._held: Held = from_wire(wish.held)  # by the neighbour, including what has been sent since
        self._gaps: Held = {}  # reported as trimmed; if such a message arrives after all, it is sent
        self._grown = asyncio.Event()
        self._gaps_due = 0.0  # when to check for trimmed messages, in the loop's time

    def holds(self, store: bytes, incarnation: bytes, first: int, last: int) -> None:
        """Note that the neighbour has these messages: it sent them or they were sent to it."""
        origin = (store, incarnation)
        self._held[origin] = self._held.get(origin, NONE).add(first, last)

    async def run(self) -> None:
        """Send until cancelled. Raises LinkStale if the local log went back in time."""
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
                    text = "cannot read the log, a neighbour waits: %s"
                    log.info(text, error, extra={"action": "log_unread"})
                    await asyncio.sleep(AGAIN_S)
                else:
                    await self._wait()
        finally:
            feed.watchers.remove(self._grown.set)
            self._hub.serving.dec()

    async def _wait(self) -> None:
        """Wait until the log has grown or gaps are due; poll while this process does not follow the log yet."""
        is_followed = self._hub.service.fanout.place is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._hub.settings.beat_s if is_followed else FOLLOWED_S):
                await self._grown.wait()

    def _first_place(self, state: LogState) -> Place:
        """Return up to where the neighbour lacks nothing, so that the whole log need not be read.

        That is the log's end at the greeting if it holds everything up to there, or a later place that it names itself.
        """
        place = START
        if not lacking(self._held, self._greeting.held):
            place = self._greeting.head
        if self._wish.position is not None:
            seen = parse_place(self._wish.position)
            place = max(place, seen) if seen <= state.head else place
        return place

    async def _send_gaps(self) -> None:
        """Report messages that were trimmed here and that the neighbour lacks (4.5). Raises StoreError.

        Checked regularly: the log is trimmed while it is sent, and gaps also arrive over other links and processes.
        Trimmed messages may still be in memory, or will be once this process has followed its log that far.
        """
        now = self._wire.loop_time()
        if now < self._gaps_due:
            return
        state = await self._hub.replica.state()
        if self.place is None:
            self.place = self._first_place(state)
        if self.place > state.head:
            raise LinkStale(
                "the local log went back in time; new messages have places before those that were sent"
            )
        followed = self._hub.service.fanout.place
        if followed is None or followed < state.trimmed:
            return
        self._gaps_due = now + self._hub.settings.beat_s
        known = united(self._held, self._gaps)
        if lacking(known, state.gone):
            self._report_gaps(lacking(united(known, self._in_memory(self.place)), state.gone))

    def _in_memory(self, place: Place) -> Held:
        """Return the messages after the place that are in memory and will be sent, trimmed or not."""
        found: dict[Origin, list[Span]] = {}
        for entry in self._hub.service.recent_entries.after(place) or ():
            store, _, incarnation = entry.origin.partition(b" ")
            found.setdefault((store, incarnation), []).append((entry.first, _last(entry)))
        return {origin: Intervals.of(spans) for origin, spans in found.items()}

    def _report_gaps(self, gaps: Iterable[tuple[Origin, Span]]) -> None:
        for (store, incarnation), (first, last) in gaps:
            self._wire.write(pubsub.encode_gap(store, incarnation, first, last))
            reported = self._gaps.get((store, incarnation), NONE)
            self._gaps[store, incarnation] = reported.add(first, last)

    async def _send_all(self) -> None:
        """Send everything up to where this process has followed the log. Raises StoreError."""
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
            return  # the neighbour's own message
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
        while self._wire.backlog() > ROOM_BYTES:  # noqa: ASYNC110  there is no notification
            await asyncio.sleep(PAUSE_S)


def _last(entry: Entry) -> int:
    return entry.first + entry.messages - 1


def _lines(entry: Entry, first: int, last: int) -> bytes:
    """Return the lines of an entry that have these numbers."""
    if first == entry.first and last == _last(entry):
        return entry.block
    lines = entry.block.splitlines(keepends=True)
    return b"".join(lines[first - entry.first : last - entry.first + 1])
