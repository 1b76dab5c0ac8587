"""Where a message that came out of a local queue goes, and as what (docs/sysv.md 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

from protos.rqp_cast import Quality, TMsg, parse_t_msg
from protos.types import PeerError
from services.store import Queue, Store, records
from services.store.errors import QueueUnknown
from services.store.rqp_binding import Protocol
from services.sysv.record import Record
from services.sysv.settings import Format

INJURED = "injured"  # rqp_cast.md 4.3
UNKNOWN_KEY = "unknown_key"


@dataclass(frozen=True, slots=True)
class Place:
    """`reason`: '' to be put into the queue, else to be moved to its dead letters."""

    queue: Queue
    record: bytes
    reason: str = ""
    error: str = ""


class Places:
    """Finds the queues of one mapping; `forget` what is known when the store says that it is not so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._homes: dict[str, Queue] = {}  # mappings' own queues, by name: handles follow their documents

    def forget(self) -> None:
        self._homes.clear()

    async def place_of(self, record: Record) -> Place:
        """Raises QueueUnknown where the mapping's own queue is not there, StoreUnavailable."""
        if record.format is Format.RAW:
            return await self._home(record)
        try:
            message = parse_t_msg(record.body)
        except PeerError as error:
            return await self._home(record, INJURED, str(error))
        queue = await self._of_key(message)
        if queue is None:
            return await self._home(record, UNKNOWN_KEY, f"no queue has the key {message.key}")
        attributes = {"mtype": record.mtype, "certain": message.msg_type is Quality.HIGH_QUALITY}
        return Place(queue, records.encode(message.data, attributes))

    async def _home(self, record: Record, reason: str = "", error: str = "") -> Place:
        """The mapping's own queue, and the body as it came."""
        queue = self._homes.get(record.queue)
        if queue is None:
            queue = self._homes[record.queue] = await self._store.find(record.queue)
        return Place(queue, records.encode(record.body, {"mtype": record.mtype}), reason, error)

    async def _of_key(self, message: TMsg) -> Queue | None:
        """A transmission queue for that key, best one that sends with that certainty; else the queue here with it."""
        is_certain = message.msg_type is Quality.HIGH_QUALITY
        found: Queue | None = None
        for queue in await self._store.remotes():
            remote = queue.spec.remote
            if remote is not None and (remote.protocol, remote.number) == (Protocol.CAST, message.key):
                if remote.reliable is is_certain:
                    return queue
                found = queue
        if found is not None:
            return found
        try:
            return await self._store.numbered(Protocol.CAST, message.key)
        except QueueUnknown:
            return None
