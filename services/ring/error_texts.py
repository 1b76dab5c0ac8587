"""Texts of ERROR replies, on the client port and around the ring, as clients log them (ring.md 5.3, 5.8)."""

from __future__ import annotations

from services.store import StoreError, StoreUnavailable
from services.store.model import errors

EMPTY = "empty"  # 5.2
UNSERVED = "no node serves this queue"  # 5.3
OF_NODES = "queue names that begin with ring/ are reserved"
TOO_LARGE_FOR_THE_RING = "message is too large for the ring, and no queue of this name is here"
TOO_MANY_UNSETTLED = "too many messages are unsettled: the next request settles them"
CREATE_FORBIDDEN = "queues cannot be created here: ask the operator"
NOT_OWNER = "queue was not created by create_queue: only its operator can delete it"

# requests around the ring
TOO_MANY = "too many requests are waiting for the ring"
EXPIRED = "the message of this pull was settled, or went back to its queue"
TIMEOUT = "timeout"  # 5.3
UNKNOWN = "unknown: a link broke on its way, and no node serves this queue now"  # 5.3
FAULT = "node failed: nothing was done; see the log of the node"
STOPPING = "this node is stopping"
STOPPED = "unknown: this node is stopping, and no reply has come"

REFUSED: dict[type[StoreError], str] = {
    errors.QueueUnknown: UNSERVED,
    errors.AccessDenied: "access denied: ask the operator of this queue",
    errors.QueueExists: "queue exists already",
    errors.NameReserved: OF_NODES,
    errors.QueueFull: "queue is full: pull from it, or push later",
    errors.QueuePaused: "queue is paused: try again later",
    errors.QueueReserved: "queue is reserved by another sender: try again later",
    errors.MessageTooLarge: "message is too large for the system that this queue leads to",
    errors.StoreFull: "store is full: pull messages, or push later",
    errors.StoreEvicts: "store may evict messages: its operator must set maxmemory-policy to noeviction",
    errors.AckLevelRefused: "store cannot keep what create_queue promises: a replica may be away, try again later; "
    "if it stays so, its operator must add replicas or lower the ack level",
    errors.AckLevelLost: "store no longer writes to disk: its operator must switch the append-only file on",
    errors.DatasetLost: "store has lost its data: nothing was done; its operator must restore it",
    errors.NotInitialised: "store is not set up: nothing was done; its operator must initialise it",
    StoreUnavailable: "store is unavailable: nothing was done; try again later",
    StoreError: "store refused: nothing was done; see the log of the node",
}


def too_large_to_carry(most: int) -> str:
    """Return the refusal of a message larger than `most` octets."""
    return f"message is too large for the ring: at most {most} octets"


def error_text(error: StoreError) -> str:
    """Return the text for an error's class, or its nearest base. Never call it with OutcomeUnknown."""
    return next(REFUSED[kind] for kind in type(error).__mro__ if kind in REFUSED)
