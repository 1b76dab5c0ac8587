"""The queues in which nodes keep what they have to send: internal ones (docs/store.md)."""

from __future__ import annotations

from services.queueing import decode_name
from services.store.model import PREFIX


def outgoing_name(group: int, node: bytes) -> str:
    """Where the node of this name keeps what waits for its successor; at most 248 octets."""
    return f"{PREFIX}{group}/{decode_name(node)}"
