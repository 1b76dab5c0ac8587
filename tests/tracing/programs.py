"""Edges as separate programs, which may be traced."""

from __future__ import annotations

from tests.program import EdgeProgram
from tests.ring.clients.client import Client as RingClient
from tests.tmq.process import EdgeProgram as TmqProgram

__all__ = ["RingProgram", "TmqProgram"]


class RingProgram(EdgeProgram):
    edge = "ring"
    listeners = ("listeners.clients.port=0", "listeners.ring=off")

    async def client(self) -> RingClient:
        return self.adopt(await RingClient.connect(self.place("clients")))
