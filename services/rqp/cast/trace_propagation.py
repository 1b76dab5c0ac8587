"""What both ends know of a certain message: who gave it its id, and the id (rqp_cast.md 2.3)."""

from __future__ import annotations

from protos.rqp_cast import identity
from services.rqp.cast.machines.machines import PROTOCOL
from services.store.model import Hop, hop


def hop_of(agent: str, identifier: int) -> Hop:
    """agent: its address. Behind an address translation the two ends do not see the same one."""
    return hop(PROTOCOL, identity(agent, identifier))
