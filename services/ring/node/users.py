"""Connect the parts that handle USER messages (ring.md 2.2, 4.5, 5.3 to 5.7).

The links pass what the predecessor sends to `user_sink` and send what `user_source` gives; the client port uses
`remote_requests`. Call `start` once the store's background work runs; the links may exist from then on. At the end call
`stop_taking`, close the links, call `close`, then close the service.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from protos.ring import HEAD_BYTES, MAX_USER_SENT, Relay
from services.kit.readiness import Readiness
from services.queueing import decode_name
from services.ring.node.boxes.bindings import Bindings
from services.ring.node.boxes.inbox import Inbox
from services.ring.node.boxes.marks import Marks
from services.ring.node.boxes.outbox import Outbox
from services.ring.node.counts import Counts
from services.ring.node.outgoing.outgoing import Outgoing
from services.ring.node.outgoing.ownership import Ownership, outgoing_name
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.ring.node.outgoing.writer import QueueWriter
from services.ring.node.queues.leases import Leases
from services.ring.node.queues.queue_cache import QueueCache
from services.ring.node.queues.remote_requests import RemoteRequests
from services.ring.node.queues.serving import Serving
from services.ring.node.relay.route_actions import Relaying
from services.ring.service import RingService
from services.store import StoreError

DUPLICATE_NAME = "another process with this node's name uses the store: give each its own port or node.name"
PUBLISH_S = 0.25  # between updates of the metrics


class MergedSource:
    """A UserSource that alternates between stored messages and requests in memory, even with room for one."""

    def __init__(self, outgoing: Outgoing, remote_requests: RemoteRequests, marks: Marks) -> None:
        """Alternate between `outgoing` and `remote_requests`; `marks` is notified of messages that leave the store."""
        self._outgoing = outgoing
        self._remote_requests = remote_requests
        self._marks = marks
        self._is_requests_turn = False

    def take(self, room: int) -> list[OutgoingMessage]:
        """Return at most `room` messages, half of them requests if there are enough of both."""
        self._is_requests_turn = not self._is_requests_turn
        taken = self._remote_requests.take((room + self._is_requests_turn) // 2)
        wanted = room - len(taken)
        stored = self._outgoing.take(wanted)
        taken += self._marks.leave(stored, are_all=len(stored) < wanted)
        return taken + self._remote_requests.take(room - len(taken))

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when either source has something to send."""
        self._outgoing.on_ready(callback)
        self._remote_requests.on_ready(callback)


class Users:
    """The USER handling of one node. `me` is its name, at most MAX_SENDER octets."""

    def __init__(
        self,
        service: RingService,
        me: bytes,
        *,
        group: int,
        max_laps: int = 3,
        forward_user: bool = False,
        timeout_s: float = 30.0,
        max_payload: int = MAX_USER_SENT,
    ) -> None:
        """timeout_s: how long a client's request may go around (5.3).

        max_payload: octets of a USER begun here (2.1).
        """
        self._service = service
        self.counts = Counts(service.metrics)
        relay = Relay(me, max_laps, seed=secrets.token_bytes(32))
        self.marks = Marks(relay)
        self.outgoing = Outgoing(service, self.marks.put_on)
        self.writer = QueueWriter(service, self.outgoing, lambda: self.ownership.lost())
        self.marks.use(self.writer)
        self.queue_name = outgoing_name(group, me)
        self.ownership = Ownership(service, self.queue_name, self.writer, self.outgoing)
        # what a node needs to be in a ring: without it the links are closed (4.7)
        self.readiness = Readiness(
            service.readiness,
            storing=lambda: _text(self.writer.trouble),
            ownership=lambda: _text(self.ownership.trouble),
            name=lambda: DUPLICATE_NAME if self.ownership.has_duplicate_name else None,
        )
        self.leases = Leases(service)
        self._queue_cache = QueueCache(service)
        self.bindings = Bindings(service, group)
        self.outbox = Outbox(service, self.bindings, self.ownership, self.outgoing, self.counts, max_payload)
        max_message = max_payload - HEAD_BYTES
        fault, hops = service.metrics.local_errors.inc, service.store.trace_propagation
        self.remote_requests = RemoteRequests(
            me, self.writer, self.counts, timeout_s, fault, hops, max_message
        )
        inbox = Inbox(service, self.bindings, f"ring {decode_name(me)}")
        serving = Serving(service, self.leases, max_message)
        self.user_sink = Relaying(
            relay,
            self.writer,
            self._queue_cache,
            serving,
            inbox,
            self.remote_requests,
            self.counts,
            forward_user,
            self.marks.came_back,
            service.metrics.local_errors.inc,
        )
        self.user_source = MergedSource(self.outgoing, self.remote_requests, self.marks)
        self._publishing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start everything that runs in the background."""
        self.ownership.start()
        self.bindings.start()
        self.outbox.start()
        self._publishing = asyncio.create_task(self._keep_publishing(), name="ring counts")

    async def stop_taking(self) -> None:
        """Take no more messages from the outbox."""
        await self.outbox.close()

    async def close(self) -> None:
        """Stop everything, once the links are closed. Outgoing messages stay in the store."""
        await self.outbox.close()
        self.user_sink.close()
        self.marks.close()
        self.remote_requests.close()
        await self.bindings.close()
        self.leases.close()
        self._queue_cache.close()
        await self.ownership.close()
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait((self._publishing,))
        self.counts.publish()

    async def _keep_publishing(self) -> None:
        while True:
            await asyncio.sleep(PUBLISH_S)
            self.counts.publish()


def _text(error: StoreError | None) -> str | None:
    return None if error is None else str(error)
