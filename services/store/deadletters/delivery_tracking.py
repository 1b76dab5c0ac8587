"""Track one message until it leaves its queue (lua/queues.lua, Fates).

The message is alone in its entry. The step that removes it from the queue writes the result to a key. Returns, moves
to the end and sweeps keep the tracking.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import Enum

from services.store.model.errors import OutcomeUnknown
from services.store.model.identities import DeliveryToken
from services.store.model.queues import Queue
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Domain

KEEP_MS = 300_000  # the result expires this long after the last poll


class DeliveryStatus(Enum):
    """The status of a tracked message: still in its queue, or how it left."""

    WAITS = "waits"  # it is in the queue, possibly leased
    SETTLED = "settled"  # a consumer acknowledged it
    DEAD = "dead"  # it became a dead letter, which may have been trimmed
    EMPTIED = "emptied"  # the queue was purged


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The status of a tracked message, with details of its end."""

    status: DeliveryStatus
    session: str = ""  # that settled it; begins with the edge's name
    dead_letter_id: str = ""
    reason: str = ""  # of its death


class DeliveryTracker:
    """A tracker that puts one message and polls its status until `close`."""

    def __init__(self, domain: Domain, queue: Queue) -> None:
        self._domain = domain
        self._queue = queue
        self._token = secrets.token_hex(16)
        self._key = domain.keys.fate(self._token)

    async def put(self, record: bytes, origin: str) -> None:
        """Put the message; return once it is durable at the queue's ack level. Raises the errors of `publish`."""
        await self._domain.pipe.ready()
        client = AsyncClient(self._domain.pipe)
        await client.publish_once(DeliveryToken(self._token, KEEP_MS), self._queue, record, origin)

    async def poll(self) -> DeliveryResult:
        """Return the current status. Raises OutcomeUnknown if the result has expired, StoreUnavailable."""
        link = self._domain.link
        await link.call("PEXPIRE", self._key, KEEP_MS)
        found = await link.call("GET", self._key)
        if found is None:
            raise OutcomeUnknown(
                "the tracking of the message has expired in the store: its outcome is unknown"
            )
        return _parse(found.decode())

    async def close(self) -> None:
        """Remove the tracking from the store. Raises StoreUnavailable."""
        await self._domain.link.call("DEL", self._key)


def _parse(text: str) -> DeliveryResult:
    """Parse 'waits', 'settled <session>', 'dead <id> <reason>' or 'emptied'."""
    match text.split(" ", 2):
        case ["settled", session]:
            return DeliveryResult(DeliveryStatus.SETTLED, session=session)
        case ["dead", letter, reason]:
            return DeliveryResult(DeliveryStatus.DEAD, dead_letter_id=letter, reason=reason)
        case ["emptied"]:
            return DeliveryResult(DeliveryStatus.EMPTIED)
        case _:
            return DeliveryResult(DeliveryStatus.WAITS)
