"""Find the queue of a message from a local queue, and encode it (docs/sysv.md 3.5)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from protos.rqp_cast import Quality, TMsg, parse_t_msg
from protos.types import PeerError
from services.store import Queue, Store
from services.store.model import CERTAIN, Protocol, QueueUnknown, records
from services.sysv.mtype import MTYPE
from services.sysv.record import Record
from services.sysv.settings import Format

log = logging.getLogger(__name__)

INJURED = "injured"  # rqp_cast.md 4.3
UNKNOWN_KEY = "unknown_key"


@dataclass(frozen=True, slots=True)
class Place:
    """A queue and a message for it; for its dead letters if there is a `reason`."""

    queue: Queue
    record: bytes
    reason: str = ""
    error: str = ""


class Places:
    """The queues of one mapping, whose current queue is `queue`."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._homes: dict[str, Queue] = {}  # mappings' own queues, by name: handles follow their documents

    def forget(self) -> None:
        """Drop cached queues, after the store has refused one."""
        self._homes.clear()

    async def place_of(self, record: Record) -> Place:
        """Return the place of a message. Raises QueueUnknown if the mapping's queue is missing, StoreUnavailable."""
        if record.format is Format.RAW:
            return await self._home(record)
        try:
            message = parse_t_msg(record.body)
        except PeerError as error:
            return await self._home(record, INJURED, str(error))
        queue = await self._of_key(message)
        if queue is None:
            return await self._home(record, UNKNOWN_KEY, f"no queue has the key {message.key}")
        attributes = {MTYPE: record.mtype, CERTAIN: message.msg_type is Quality.HIGH_QUALITY}
        return Place(queue, records.encode(message.data, attributes))

    async def _home(self, record: Record, reason: str = "", error: str = "") -> Place:
        """Return the mapping's queue at the time of receipt, with the unchanged body."""
        queue = self._homes.get(record.queue)
        if queue is None:
            queue = self._homes[record.queue] = await self._find(record.queue)
        return Place(queue, records.encode(record.body, {MTYPE: record.mtype}), reason, error)

    async def _find(self, name: str) -> Queue:
        """Return the queue, or the mapping's current queue if it was deleted. Raises QueueUnknown."""
        try:
            return await self._store.catalogue.find(name)
        except QueueUnknown:
            if name == self._queue:
                raise
        queue = await self._store.catalogue.find(self._queue)
        text = "queue %r no longer exists: the message in the journal goes to %r"
        log.warning(text, name, self._queue, extra={"action": "sysv_redirected", "queue": self._queue})
        return queue

    async def _of_key(self, message: TMsg) -> Queue | None:
        """Return the best transmission queue for the message's key and quality, else the local queue with the key."""
        is_certain = message.msg_type is Quality.HIGH_QUALITY

        def rank(queue: Queue) -> tuple[bool, bool, str]:
            remote = queue.spec.remote
            return remote is None or remote.reliable is not is_certain, queue.spec.paused, queue.name

        if found := await self._store.catalogue.leading_to(Protocol.CAST, message.key):
            return min(found, key=rank)
        try:
            return await self._store.catalogue.numbered(Protocol.CAST, message.key)
        except QueueUnknown:
            return None
