"""Derive trace ids of certain messages from the id and the agent that gave it (rqp_cast.md 2.3)."""

from __future__ import annotations

from protos.rqp_cast import identity
from services.rqp.cast.machines.machines import PROTOCOL
from services.store.model import Hop, hop


def hop_of(agent: str, identifier: int) -> Hop:
    """Return the hop of a message. agent: its address; behind address translation both ends see different ones."""
    return hop(PROTOCOL, identity(agent, identifier))
