"""Decide whether a queue's `access` admits a client."""

from __future__ import annotations

import ipaddress

from services.store.model.access_lists import Access, parse_network
from services.store.model.client import INTERNAL_CLIENT, Client


class Admission:
    """An `access` section prepared for a check on every request."""

    __slots__ = ("_edges", "_names", "_networks", "access")

    def __init__(self, access: Access) -> None:
        self.access = access
        self._edges = frozenset(access.edges)
        self._networks = tuple(map(parse_network, access.peers))
        self._names = frozenset(access.certificates)

    def problem(self, client: Client) -> str:
        """Return why the client is denied access, or ''."""
        if client is INTERNAL_CLIENT:
            return ""
        if self._edges and client.edge not in self._edges:
            return f"access.edges does not name {client.edge}"
        if self._networks and not self._is_in_networks(client.address):
            return f"access.peers does not name {client.address or 'a client without an address'}"
        if self._names and not self._names & client.names:
            shown = ", ".join(sorted(client.names)) or "a client without a certificate"
            return f"access.certificates does not name {shown}"
        return ""

    def _is_in_networks(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def admission(access: Access) -> Admission | None:
    """Return the check for `access`, or None if it admits every client."""
    return None if access == Access() else Admission(access)
