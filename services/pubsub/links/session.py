"""One link as the kit sees it: the greeting, and what comes goes to those who handle it (pubsub.md 4.3-4.5)."""

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

Work = Callable[
    [], Awaitable[None]
]  # begun by its task alone: one that is cancelled before that leaves nothing

AGAIN_S = 0.5
BLIND_BEATS = 2  # without a store, before a neighbour that follows us is sent elsewhere


class LinkSession:
    """`ended` is set when the connection has gone; `has_met` if both sides had said who they are by then."""

    def __init__(self, hub: LinkHub, wire: Wire, on_met: Callable[[], None] | None = None) -> None:
        """on_met: hears when both sides have said who they are."""
        self.ended = asyncio.Event()
        self.has_met = False
        self.same_store = False
        self._on_met = on_met
        self._hub = hub
        self._wire = wire
        self._parser = pubsub.LinkConnection(hub.settings.limits(), wire.loop_time())
        self._greeting: LogState | None = None  # what we said of ourselves, once we have
        self._peer: pubsub.Have | None = None
        self._taker: Follower | None = None
        self._sender: Sender | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._greet)
        self._start(self._beat)

    # what the kit tells

    def received(self, data: bytes, now: float) -> None:
        self._handle(self._parser.receive(data, now))

    @property
    def buffered(self) -> int:
        return self._parser.buffered

    def resumed(self, now: float) -> None:
        self._parser.restart_clock(now)

    def deadline(self) -> float | None:
        return self._parser.deadline()

    def on_time(self, now: float) -> None:
        self._handle(self._parser.on_time(now))

    def eof(self, now: float) -> None:
        self._handle(self._parser.receive_eof(now))
        self._wire.close()

    def drain(self) -> None:
        self._wire.close()

    def lost(self, reset: bool) -> None:
        self._stop()
        self.ended.set()

    # what who dialled it tells

    def close(self) -> None:
        """Nobody names the neighbour any more: it is followed no longer, whenever it lets go of the connection."""
        self._stop()
        self._wire.close()

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._taker is not None:
            self._hub.let_go(self._taker.let_go())

    # what comes

    def _handle(self, events: Iterator[pubsub.LinkEvent]) -> None:
        """Raises PeerError for what a neighbour must not say."""
        for event in events:
            match event:
                case pubsub.Have():
                    self._greeted(event)
                case pubsub.Follow():
                    self._followed(event)
                case pubsub.Entries() | pubsub.Gap() | pubsub.Beat():
                    self._came(event)
                case pubsub.Problem():
                    fields = {"action": "link_refused", "peer": str(self._wire.peer)}
                    reason = event.reason.decode("utf-8", "backslashreplace")
                    log.warning("the neighbour ends the link: %s", reason, extra=fields)
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
        """Both sides have said who they are."""
        peer = self._peer
        assert peer is not None
        self.has_met = True
        self.same_store = peer.store == greeting.store
        if self._on_met is not None:
            self._on_met()
        if self.same_store:
            self._hub.tell_same_store(self._wire.peer, peer.store)
            self._wire.write(pubsub.encode_problem("this is the same store: no link is needed"))
            self._wire.close()
            return
        self._wire.name_peer(peer.store.decode())
        fields = {"action": "link_up", "peer": str(self._wire.peer), "store": peer.store.decode()}
        log.info("linked with store %s", peer.store.decode(), extra=fields)
        holder = f"{self._hub.service.domain.pipe.session} {self._wire.conn}"
        self._taker = Follower(self._hub, self._wire, peer, holder)
        self._start(self._taker.run)

    def _followed(self, wish: pubsub.Follow) -> None:
        if self._peer is None or self._greeting is None or self._sender is not None:
            raise PeerError("follow_out_of_turn")
        self._sender = Sender(self._hub, self._wire, self._peer, wish, self._greeting)
        self._start(self._sender.run)

    def _came(self, event: pubsub.Entries | pubsub.Gap | pubsub.Beat) -> None:
        if self._taker is None or not self._taker.is_following:
            if isinstance(event, pubsub.Beat):
                return
            raise PeerError("not_asked_for")
        if self._sender is not None and isinstance(event, pubsub.Entries):
            last = event.first + event.count - 1
            self._sender.holds(event.store, event.incarnation, event.first, last)
        self._taker.put(event)

    # what is done beside

    def _start(self, work: Work) -> None:
        task = asyncio.ensure_future(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Work) -> None:
        """A part that ends of itself takes the link with it: it is set up anew, and nothing is lost."""
        try:
            await work()
        except* LinkStale as stale:
            fields = {"action": "link_stale", "peer": str(self._wire.peer)}
            log.info("the link begins anew: %s", stale.exceptions[0], extra=fields)
            self._wire.close()
        except* Exception as error:
            fields = {"action": "link_failed", "peer": str(self._wire.peer)}
            log.exception("a link failed", extra=fields, exc_info=error)
            self._hub.local_errors.inc()
            self._wire.abort()

    async def _greet(self) -> None:
        """Says who we are and what we hold, as soon as the store can tell."""
        await self._hub.service.opened.wait()
        while True:
            try:
                state = await self._hub.replica.state()
            except StoreError as error:
                log.debug("no greeting yet: %s", error, extra={"action": "link_waits"})
                await asyncio.sleep(AGAIN_S)
            else:
                break
        self._wire.write(pubsub.encode_have(state.store, state.incarnation, to_wire(state.held)))
        self._greeting = state
        if self._peer is not None:
            self._meet(state)

    async def _check_greeting(self) -> None:
        """What was said of our store must stay true, also where nobody here follows. Raises LinkStale."""
        if self._greeting is None:
            return
        with contextlib.suppress(StoreError):
            if (await self._hub.replica.state()).incarnation != self._greeting.incarnation:
                raise LinkStale("the store's server is another one than was said")

    async def _beat(self) -> None:
        """Tells that we are there, and up to where everything of our log has been sent (4.5)."""
        blind = 0
        while True:
            await asyncio.sleep(self._hub.settings.beat_s)
            blind = blind + 1 if self._greeting is not None and self._hub.service.readiness.unready() else 0
            await self._check_greeting()
            if blind >= BLIND_BEATS:
                log.info("a link is let go: no store here", extra={"action": "link_blind"})
                self._wire.close()  # the neighbour may follow a server that sees the store
                return
            if self._wire.backlog() <= ROOM_BYTES:
                place = self._sender.place if self._sender is not None else None
                self._wire.write(pubsub.encode_beat(str(place).encode() if place is not None else None))
