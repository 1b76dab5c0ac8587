"""The client on whose behalf messages are put in or taken out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ConnectedPeer(Protocol):
    """Who is at the other end of a connection, as the edge's shell knows him."""

    @property
    def address(self) -> str: ...

    @property
    def names(self) -> frozenset[str]:
        """All in his verified certificate."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of an edge. What nobody can know is empty, and admitted where nobody asks for it alone."""

    edge: str
    address: str = ""
    names: frozenset[str] = frozenset()  # in the verified certificate

    @classmethod
    def at(cls, edge: str, peer: ConnectedPeer) -> Client:
        return cls(edge, peer.address, peer.names)


# No client: the administrator, and what documents themselves set going. Every queue lets it.
INTERNAL_CLIENT = Client("")
