"""What USER messages mean in a node: the joint of what carries them (ring.md 2.2, 4.5, 5.3 to 5.7).

Wiring: the links hand what the predecessor sends to `arrivals` and send what `departures` gives; the client port asks
`asker`. `start` once the service's store looks after itself; the links may be there from then on. At the end:
`stop_taking`, then the links end, then `close`, then the service closes.
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
from services.ring.node.names import outgoing_name
from services.ring.node.outgoing.outgoing import Outgoing
from services.ring.node.outgoing.ownership import Ownership
from services.ring.node.outgoing.passage import Parcel
from services.ring.node.outgoing.storing import Storing
from services.ring.node.queues.around import RingAsker
from services.ring.node.queues.leases import Leases
from services.ring.node.queues.lookups import Lookups
from services.ring.node.queues.serving import Serving
from services.ring.node.relay.relaying import Relaying
from services.ring.service import RingService
from services.store import StoreError

NAMESAKE = "another process of this node's name is in the store: give each a port, or a node.name, of its own"
PUBLISH_S = 0.25  # how often the counts reach the metrics


class Joined:
    """Departures: what waits in the store and what waits in memory take turns, also where there is room for one."""

    def __init__(self, outgoing: Outgoing, asker: RingAsker, marks: Marks) -> None:
        """marks: told of what leaves the store."""
        self._outgoing = outgoing
        self._asker = asker
        self._marks = marks
        self._is_askers_turn = False

    def take(self, room: int) -> list[Parcel]:
        self._is_askers_turn = not self._is_askers_turn
        taken = self._asker.take((room + self._is_askers_turn) // 2)
        wanted = room - len(taken)
        stored = self._outgoing.take(wanted)
        taken += self._marks.leave(stored, are_all=len(stored) < wanted)
        return taken + self._asker.take(room - len(taken))

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._outgoing.on_ready(callback)
        self._asker.on_ready(callback)


class Users:
    """One node's. `me` is its name, at most MAX_SENDER octets."""

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
        """timeout_s: how long a question of a client may go around (5.3). max_payload: of a USER begun here (2.1)."""
        self._service = service
        self.counts = Counts(service.metrics)
        relay = Relay(me, max_laps, seed=secrets.token_bytes(32))
        self._marks = Marks(relay)
        self.outgoing = Outgoing(service, self._marks.put_on)
        self.storing = Storing(service, self.outgoing, self._lost)
        self._marks.use(self.storing)
        self.queue_name = outgoing_name(group, me)
        self.ownership = Ownership(service, self.queue_name, self.storing, self.outgoing)
        # what a node needs to be in a ring: without, it closes its links (4.7)
        self.readiness = Readiness(
            service.readiness,
            storing=lambda: _text(self.storing.trouble),
            ownership=lambda: _text(self.ownership.trouble),
            name=lambda: NAMESAKE if self.has_namesake else None,
        )
        self.leases = Leases(service)
        self._lookups = Lookups(service)
        self.bindings = Bindings(service, group)
        self.outbox = Outbox(service, self.bindings, self.ownership, self.outgoing, self.counts, max_payload)
        max_message = max_payload - HEAD_BYTES
        fault, hops = service.metrics.local_errors.inc, service.store.trace_propagation
        self.asker = RingAsker(me, self.storing, self.counts, timeout_s, fault, hops, max_message)
        inbox = Inbox(service, self.bindings, f"ring {decode_name(me)}")
        serving = Serving(service, self.leases, max_message)
        self.arrivals = Relaying(
            relay,
            self.storing,
            self._lookups,
            serving,
            inbox,
            self.asker,
            self.counts,
            forward_user,
            self._marks.came_back,
            service.metrics.local_errors.inc,
        )
        self.departures = Joined(self.outgoing, self.asker, self._marks)
        self._publishing: asyncio.Task[None] | None = None

    @property
    def has_namesake(self) -> bool:
        """Whether another process of this name lives: it has what waits for the successor, and is the node (4.7)."""
        return self.ownership.has_namesake

    @property
    def marks_wanted(self) -> bool:
        """Whether something that this node put on may still come back (5.5)."""
        return self._marks.are_wanted

    @property
    def is_anothers(self) -> bool:
        """Whether another process sends what this one has to send: its last life, or a node of the same name."""
        return self.ownership.is_anothers

    def start(self) -> None:
        self.ownership.start()
        self.bindings.start()
        self.outbox.start()
        self._publishing = asyncio.create_task(self._keep_publishing(), name="ring counts")

    async def stop_taking(self) -> None:
        """Nothing is taken out of the outbox any more."""
        await self.outbox.close()

    async def close(self) -> None:
        """The links are gone. What waits for the successor stays in the store."""
        await self.outbox.close()
        self.arrivals.close()
        self._marks.close()
        self.asker.close()
        await self.bindings.close()
        self.leases.close()
        self._lookups.close()
        await self.ownership.close()
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait((self._publishing,))
        self.counts.publish()

    def _lost(self) -> None:
        self.ownership.lost()

    async def _keep_publishing(self) -> None:
        while True:
            await asyncio.sleep(PUBLISH_S)
            self.counts.publish()


def _text(error: StoreError | None) -> str | None:
    return None if error is None else str(error)
