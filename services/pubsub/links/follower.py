"""Follow a neighbour: announce which messages are held here, and store those it sends (pubsub.md 4.3, 4.4)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from protos import pubsub
from services.kit.session import Wire
from services.pubsub.bindings import record_of
from services.pubsub.links.held import from_wire, to_wire, united
from services.pubsub.links.hub import LinkHub, LinkStale
from services.pubsub.render import runs
from services.store import Queue, StoreError
from services.store.log import Arrived, Gap
from services.store.model import BindingsChanged, NumbersScattered

log = logging.getLogger(__name__)

CALL_BYTES = 1 << 20  # of lines in one call to the store
CALL_ITEMS = 500
HELD_BYTES = 4 << 20  # waiting for the store; beyond it the link is not read
ITEM_BYTES = 200  # memory of an item in addition to its lines
AGAIN_S = (0.05, 0.1, 0.2, 0.5, 1.0)

T = TypeVar("T")
Item = pubsub.Entries | pubsub.Gap | pubsub.Beat


class Follower:
    """The follower of one link; `run` is its task. `is_following`: the neighbour may send."""

    def __init__(self, hub: LinkHub, wire: Wire, peer: pubsub.Have, holder: str) -> None:
        self.is_following = False
        self._hub = hub
        self._wire = wire
        self._peer = peer
        self._holder = holder
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._some = asyncio.Event()
        self._is_paused = False
        self._seen: bytes | None = None
        self._ours = self._incarnation = b""  # store and incarnation, as they are once it follows

    async def run(self) -> None:
        """Follow until cancelled. Raises StoreError or LinkStale if the link has to be set up again."""
        try:
            await self._begin()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_lease())
                group.create_task(self._take())
        finally:
            self._hub.follows_no_more(self._peer)
            if self.is_following:
                self._hub.following.dec()

    def put(self, item: Item) -> None:
        """Queue an item that arrived on the link."""
        self._items.append(item)
        self._bytes += ITEM_BYTES + (len(item.block) if isinstance(item, pubsub.Entries) else 0)
        self._some.set()
        if self._bytes > HELD_BYTES and not self._is_paused:
            self._is_paused = True
            self._wire.pause()

    async def release(self) -> None:
        """Release the lease if it is held, so that another edge of this store may follow the neighbour at once."""
        await self._hub.replica.lease(self._peer.store, self._holder, 0)

    async def _begin(self) -> None:
        """Wait for the lease, then ask the neighbour to send. Other edges of the store wait as standbys."""
        hub, peer = self._hub, self._peer
        theirs = from_wire(peer.held)
        state = await self._patiently(hub.replica.state)
        # without this store's own messages: those that it lost are asked for (4.4)
        wanted = {origin: numbers for origin, numbers in theirs.items() if origin[0] != state.store}
        baseline = await self._patiently(lambda: hub.replica.baseline(peer.store, wanted))
        while not await self._patiently(self._renew):
            hub.warn_clone(self._wire.peer, peer, self._wire.loop_time())
            await asyncio.sleep(hub.settings.lease_s / 3)  # there is no notification of expired leases
        hub.follows(peer)
        ours = theirs.get((state.store, state.incarnation))
        last = ours.spans[-1][1] if ours else 0
        state = await self._patiently(lambda: hub.replica.state(last))
        self._ours, self._incarnation = state.store, state.incarnation
        position = await self._patiently(lambda: hub.replica.seen(peer.store, self._both()))
        self.is_following = True
        hub.following.inc()
        held = to_wire(united(state.held, baseline))
        place = position.encode() if position else None
        self._wire.write(pubsub.encode_follow(state.store, state.incarnation, held, place))

    def _both(self) -> bytes:
        """Return the key under which a place in the neighbour's log is stored: both incarnations.

        If this store's data goes back in time, places noted before that is detected are then not used.
        """
        return b"%b/%b" % (self._peer.incarnation, self._incarnation)

    async def _renew(self) -> bool:
        ttl_ms = round(self._hub.settings.lease_s * 1000)
        return await self._hub.replica.lease(self._peer.store, self._holder, ttl_ms)

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(self._hub.settings.lease_s / 3)
            try:
                is_ours = await self._renew()
            except StoreError as error:
                log.debug("lease not renewed, will retry: %s", error, extra={"action": "link_lease_waits"})
                continue
            if not is_ours:
                raise LinkStale("another edge follows this neighbour now")

    # storing

    async def _take(self) -> None:
        while True:
            if not self._items:
                self._some.clear()
                await self._some.wait()
            items, size = self._next()
            if isinstance(items[0], pubsub.Beat):
                await self._note(items[0])
            else:
                await self._accept([item for item in items if not isinstance(item, pubsub.Beat)])
            self._release(size)

    def _next(self) -> tuple[list[Item], int]:
        """Remove items for one call to the store, or one BEAT. Return them and their memory."""
        items: list[Item] = []
        size = lines = 0
        while self._items and len(items) < CALL_ITEMS and lines < CALL_BYTES:
            if isinstance(self._items[0], pubsub.Beat) and items:
                break
            item = self._items.popleft()
            items.append(item)
            size += ITEM_BYTES
            if isinstance(item, pubsub.Entries):
                lines += len(item.block)
            if isinstance(item, pubsub.Beat):
                break
        return items, size + lines

    def _release(self, size: int) -> None:
        self._bytes -= size
        if self._is_paused and self._bytes < HELD_BYTES // 2:
            self._is_paused = False
            self._wire.resume()

    async def _accept(self, items: list[pubsub.Entries | pubsub.Gap]) -> None:
        hub = self._hub

        async def accept() -> tuple[int, int]:
            bindings = hub.service.bridge.bindings
            arrived = [
                Gap(item.store, item.incarnation, item.first, item.last)
                if isinstance(item, pubsub.Gap)
                else self._arrived(item)
                for item in items
            ]
            try:
                return await hub.replica.accept(arrived, bindings.subscriptions)
            except BindingsChanged:
                await hub.service.bridge.renew()
                raise

        taken, missing = await self._patiently(accept)
        hub.taken.inc(taken)
        if missing:
            hub.missing.inc(missing)
            fields = {"action": "link_gap", "peer": str(self._wire.peer), "messages": missing}
            log.warning("%d messages are missing here: the neighbour has trimmed them", missing, extra=fields)

    def _arrived(self, item: pubsub.Entries) -> Arrived:
        copies: list[tuple[int, Queue, bytes]] = []
        bindings = self._hub.service.bridge.bindings
        if bindings and not item.bridged:  # a message crosses at most one bridge (5.2)
            index = 0
            for tag, run in runs(item.block):
                queues = bindings.queues(tag)
                for line in run.split(b"\n")[:-1]:
                    copies += [(index, queue, record_of(tag, line)) for queue in queues]
                    index += 1
        copies, callbacks = self._hub.traces.received(item, copies, self._peer.store, self._ours)
        origin = (item.store, item.incarnation, item.first, item.count, item.bridged)
        return Arrived(*origin, item.block, copies, callbacks)

    async def _note(self, beat: pubsub.Beat) -> None:
        """Store the place up to which everything of the neighbour's log is stored here (4.5)."""
        if beat.position is None or beat.position == self._seen:
            return
        position, replica = beat.position, self._hub.replica
        await self._patiently(lambda: replica.note_seen(self._peer.store, self._both(), position))
        self._seen = position

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry idempotent work until the store is available. Raises LinkStale."""
        attempt = 0
        while True:
            try:
                return await work()
            except NumbersScattered as error:
                self._wire.refuse(error.reason, str(error))
                raise LinkStale(str(error)) from error
            except StoreError as error:
                if attempt == len(AGAIN_S):
                    fields = {"action": "link_waits", "peer": str(self._wire.peer)}
                    log.info("link waits for the store: %s", error, extra=fields)
                await asyncio.sleep(AGAIN_S[min(attempt, len(AGAIN_S) - 1)])
                attempt += 1
