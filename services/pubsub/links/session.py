"""One link as the kit's session: exchange greetings, and dispatch input to follower and sender (pubsub.md 4.3-4.5)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import assert_never

from protos import pubsub
from protos.types import PeerError
from services.kit.session import Wire
from services.pubsub.links.follower import Follower
from services.pubsub.links.held import to_wire
from services.pubsub.links.hub import LinkHub, LinkStale
from services.pubsub.links.sender import ROOM_BYTES, Sender
from services.store import StoreError
from services.store.log import LogState

log = logging.getLogger(__name__)

# A function, not a coroutine: its task calls it, so that one cancelled before it begins leaves nothing.
Work = Callable[[], Awaitable[None]]

AGAIN_S = 0.5
BLIND_BEATS = 2  # beats without a store before the link is closed, so that the neighbour follows another edge


class LinkSession:
    """`ended` is set when the connection has closed; `has_met`: both sides have greeted."""

    def __init__(self, hub: LinkHub, wire: Wire, on_met: Callable[[], None] = lambda: None) -> None:
        """on_met: called when both sides have greeted."""
        self.ended = asyncio.Event()
        self.has_met = False
        self.same_store = False
        self._on_met = on_met
        self._hub = hub
        self._wire = wire
        self._parser = pubsub.LinkConnection(hub.settings.limits(), wire.loop_time())
        self._greeting: LogState | None = None  # the state sent in the greeting
        self._peer: pubsub.Have | None = None
        self._follower: Follower | None = None
        self._sender: Sender | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._greet)
        self._start(self._beat)

    # callbacks from the kit

    def received(self, data: bytes, now: float) -> None:
        """Parse and handle input. Raises PeerError."""
        self._handle(self._parser.receive(data, now))

    @property
    def buffered(self) -> int:
        """Octets held of an unfinished line."""
        return self._parser.buffered

    def resumed(self, now: float) -> None:
        """Go on after the kit paused the connection."""
        self._parser.restart_clock(now)

    def deadline(self) -> float | None:
        """Return when the neighbour's silence or an unfinished line ends the link."""
        return self._parser.deadline()

    def on_time(self, now: float) -> None:
        """Handle a timeout. Raises PeerError."""
        self._handle(self._parser.on_time(now))

    def eof(self, now: float) -> None:
        """Close after the neighbour's FIN."""
        self._handle(self._parser.receive_eof(now))
        self._wire.close()

    def drain(self) -> None:
        """Close: the neighbour may follow another edge."""
        self._wire.close()

    def lost(self, reset: bool) -> None:
        """End follower and sender."""
        self._stop()
        self.ended.set()

    def close(self) -> None:
        """End the link, as the neighbour is no longer configured."""
        self._stop()
        self._wire.close()

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._follower is not None:
            self._hub.release(self._follower.release())

    # input

    def _handle(self, events: Iterator[pubsub.LinkEvent]) -> None:
        """Dispatch events. Raises PeerError for those that break the protocol."""
        for event in events:
            match event:
                case pubsub.Have():
                    self._greeted(event)
                case pubsub.Follow():
                    self._followed(event)
                case pubsub.Entries() | pubsub.Gap() | pubsub.Beat():
                    self._received(event)
                case pubsub.Problem():
                    fields = {"action": "link_refused", "peer": str(self._wire.peer)}
                    reason = event.reason.decode("utf-8", "backslashreplace")
                    log.warning("the neighbour closed the link: %s", reason, extra=fields)
                    self._wire.close()
                    return
                case _:
                    assert_never(event)

    def _greeted(self, peer: pubsub.Have) -> None:
        if self._peer is not None:
            raise PeerError("greeted_twice")
        self._peer = peer
        if self._greeting is not None:
            self._meet(self._greeting)

    def _meet(self, greeting: LogState) -> None:
        """Begin to follow the neighbour: both sides have greeted."""
        peer = self._peer
        assert peer is not None
        self.has_met = True
        self.same_store = peer.store == greeting.store
        self._on_met()
        if self.same_store:
            self._hub.warn_same_store(self._wire.peer, peer.store)
            self._wire.write(pubsub.encode_problem("this is the same store: no link is needed"))
            self._wire.close()
            return
        self._wire.name_peer(peer.store.decode())
        fields = {"action": "link_up", "peer": str(self._wire.peer), "store": peer.store.decode()}
        log.info("linked with store %s", peer.store.decode(), extra=fields)
        holder = f"{self._hub.service.domain.pipe.session} {self._wire.conn}"
        self._follower = Follower(self._hub, self._wire, peer, holder)
        self._start(self._follower.run)

    def _followed(self, wish: pubsub.Follow) -> None:
        if self._peer is None or self._greeting is None or self._sender is not None:
            raise PeerError("follow_out_of_turn")
        self._sender = Sender(self._hub, self._wire, self._peer, wish, self._greeting)
        self._start(self._sender.run)

    def _received(self, event: pubsub.Entries | pubsub.Gap | pubsub.Beat) -> None:
        if self._follower is None or not self._follower.is_following:
            if isinstance(event, pubsub.Beat):
                return
            raise PeerError("not_asked_for")
        if self._sender is not None and isinstance(event, pubsub.Entries):
            last = event.first + event.count - 1
            self._sender.holds(event.store, event.incarnation, event.first, last)
        self._follower.put(event)

    # tasks

    def _start(self, work: Work) -> None:
        task = asyncio.ensure_future(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Work) -> None:
        """Run a part; if it ends, end the link, which is then set up again without loss."""
        try:
            await work()
        except* LinkStale as stale:
            fields = {"action": "link_stale", "peer": str(self._wire.peer)}
            log.info("link closed, it will be set up again: %s", stale.exceptions[0], extra=fields)
            self._wire.close()
        except* Exception as error:
            fields = {"action": "link_failed", "peer": str(self._wire.peer)}
            log.exception("internal error, link closed", extra=fields, exc_info=error)
            self._hub.local_errors.inc()
            self._wire.abort()

    async def _greet(self) -> None:
        """Send the greeting, with what is held here, as soon as the store is available."""
        await self._hub.service.opened.wait()
        while True:
            try:
                state = await self._hub.replica.state()
            except StoreError as error:
                log.debug("greeting not sent, will retry: %s", error, extra={"action": "link_waits"})
                await asyncio.sleep(AGAIN_S)
            else:
                break
        self._wire.write(pubsub.encode_have(state.store, state.incarnation, to_wire(state.held)))
        self._greeting = state
        if self._peer is not None:
            self._meet(state)

    async def _check_greeting(self) -> None:
        """Raise LinkStale if the greeting is no longer true."""
        if self._greeting is None:
            return
        with contextlib.suppress(StoreError):
            if (await self._hub.replica.state()).incarnation != self._greeting.incarnation:
                raise LinkStale("the store's server has changed")

    async def _beat(self) -> None:
        """Send heartbeats, with the place up to which the neighbour has everything (4.5)."""
        blind = 0
        while True:
            await asyncio.sleep(self._hub.settings.beat_s)
            blind = blind + 1 if self._greeting is not None and self._hub.service.readiness.unready() else 0
            await self._check_greeting()
            if blind >= BLIND_BEATS:
                text = "link closed, the store is unavailable; the neighbour may follow another edge"
                log.info(text, extra={"action": "link_blind"})
                self._wire.close()
                return
            if self._wire.backlog() <= ROOM_BYTES:
                place = self._sender.place if self._sender is not None else None
                self._wire.write(pubsub.encode_beat(str(place).encode() if place is not None else None))
