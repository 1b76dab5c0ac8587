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


async def place_of(store: Store, record: Record) -> Place:
    """Raises QueueUnknown where the mapping's own queue is not there, StoreUnavailable."""
    if record.format is Format.RAW:
        return _raw(await store.find(record.queue), record)
    try:
        message = parse_t_msg(record.body)
    except PeerError as error:
        return _raw(await store.find(record.queue), record, INJURED, str(error))
    queue = await _of_key(store, message)
    if queue is None:
        why = f"no queue has the key {message.key}"
        return _raw(await store.find(record.queue), record, UNKNOWN_KEY, why)
    certain = message.msg_type is Quality.HIGH_QUALITY
    attributes = {"mtype": record.mtype, "certain": certain}
    return Place(queue, records.encode(message.data, attributes))


def _raw(queue: Queue, record: Record, reason: str = "", error: str = "") -> Place:
    return Place(queue, records.encode(record.body, {"mtype": record.mtype}), reason, error)


async def _of_key(store: Store, message: TMsg) -> Queue | None:
    """A transmission queue for that key, best one that sends with that certainty; else the queue here that has it."""
    certain = message.msg_type is Quality.HIGH_QUALITY
    found: Queue | None = None
    for queue in await store.remotes():
        remote = queue.spec.remote
        if remote is not None and (remote.protocol, remote.number) == (Protocol.CAST, message.key):
            if remote.reliable is certain:
                return queue
            found = queue
    if found is not None:
        return found
    try:
        return await store.numbered(Protocol.CAST, message.key)
    except QueueUnknown:
        return None
