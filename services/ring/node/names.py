"""The queues in which nodes keep what they have to send: they are nobody's to use (docs/store.md)."""

from __future__ import annotations

import re

from services.ring.service import decode_name

OUTGOING = re.compile(r"ring/\d+/")


def outgoing_name(group: int, node: bytes) -> str:
    """Where the node of this name keeps what waits for its successor; at most 248 octets."""
    return f"ring/{group}/{decode_name(node)}"


def is_outgoing(name: str) -> bool:
    """Whether it is some node's: no client, and no request that comes round, may use it."""
    return OUTGOING.match(name) is not None
