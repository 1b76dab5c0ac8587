"""What becomes of one message: whoever put it in may wait for its end (lua/queues.lua, Fates).

The message is alone in its entry, and a key tells its fate, written in the step in which it leaves the queue. It is
followed through returns, moves to the end and sweeps, whatever else stands in the queue.
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

KEEP_MS = 300_000  # whoever has not asked for so long is told nothing any more


class DeliveryStatus(Enum):
    """How a message left its queue."""

    WAITS = "waits"  # it has not, it may be leased
    SETTLED = "settled"  # whoever had taken it was done with it
    DEAD = "dead"  # it is in the dead letters, unless they are trimmed
    EMPTIED = "emptied"  # somebody emptied the queue: it is gone for good


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    status: DeliveryStatus
    session: str = ""  # of who settled it: begins with that edge's name
    dead_letter_id: str = ""  # the id among the dead letters
    reason: str = ""  # it died of


class DeliveryTracker:
    """Puts one message in, and tells what became of it until it is closed."""

    def __init__(self, domain: Domain, queue: Queue) -> None:
        self._domain = domain
        self._queue = queue
        self._token = secrets.token_hex(16)
        self._key = domain.keys.fate(self._token)

    async def put(self, record: bytes, origin: str) -> None:
        """Returns once it is durable at the queue's level. Raises StoreError, as `publish` refuses."""
        await self._domain.pipe.ready()
        client = AsyncClient(self._domain.pipe)
        await client.publish_once(DeliveryToken(self._token, KEEP_MS), self._queue, record, origin)

    async def poll(self) -> DeliveryResult:
        """As it is now. Raises OutcomeUnknown where that is forgotten, StoreUnavailable."""
        link = self._domain.link
        await link.call("PEXPIRE", self._key, KEEP_MS)
        told = await link.call("GET", self._key)
        if told is None:
            raise OutcomeUnknown("the store does not know any more what became of the message")
        return _parse(told.decode())

    async def close(self) -> None:
        """Nobody asks any more. Raises StoreUnavailable."""
        await self._domain.link.call("DEL", self._key)


def _parse(text: str) -> DeliveryResult:
    """'waits', 'settled <session>', 'dead <id> <reason>', 'emptied'"""
    match text.split(" ", 2):
        case ["settled", session]:
            return DeliveryResult(DeliveryStatus.SETTLED, session=session)
        case ["dead", letter, reason]:
            return DeliveryResult(DeliveryStatus.DEAD, dead_letter_id=letter, reason=reason)
        case ["emptied"]:
            return DeliveryResult(DeliveryStatus.EMPTIED)
        case _:
            return DeliveryResult(DeliveryStatus.WAITS)
