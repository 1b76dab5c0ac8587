"""Identify the client on whose behalf messages are put in or taken out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ConnectedPeer(Protocol):
    """The other end of a connection, as the edge's TCP shell knows it."""

    @property
    def address(self) -> str:
        """The peer's IP address."""

    @property
    def names(self) -> frozenset[str]:
        """All names in the peer's verified certificate."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of an edge. Unknown properties are empty, and denied if `access` requires them."""

    edge: str  # the edge that it is connected to
    address: str = ""  # its IP address
    names: frozenset[str] = frozenset()  # in the verified certificate

    @classmethod
    def at(cls, edge: str, peer: ConnectedPeer) -> Client:
        """Return the client that is connected to an edge as `peer`."""
        return cls(edge, peer.address, peer.names)


INTERNAL_CLIENT = Client("")
"""The administrator, and actions that documents themselves start. Every queue admits it."""
