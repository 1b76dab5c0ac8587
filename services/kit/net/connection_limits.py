"""Decide which connections a listener accepts: allowed networks, total, and connections per address."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator

from services.kit.net.refusals import Refusal

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPV6_HOST_PREFIX = 8  # bytes: a host usually has a whole /64, so connections are counted by /64


def _split(value: Any) -> Any:
    """Split the text of an environment variable, such as `10.0.0.0/8,fd00::/8`."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _network(value: Any) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be a network such as 10.0.0.0/8: {error}") from None


Networks = Annotated[tuple[Annotated[Network, PlainValidator(_network)], ...], BeforeValidator(_split)]


def plain_address(host: str) -> str:
    """Return an address without its scope, and an IPv4-mapped IPv6 address (::ffff:a.b.c.d) as IPv4."""
    host = host.partition("%")[0]
    return host.rpartition(":")[2] if host.startswith("::ffff:") and "." in host else host


class ConnectionLimits:
    """The limits of one listener and its current connections. An admitted connection must be released."""

    def __init__(self, allow: tuple[Network, ...], max_connections: int, max_per_address: int) -> None:
        self._allow = allow
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._by_address: Counter[bytes] = Counter()
        self.count = 0

    def admit(self, address: str) -> Refusal | None:
        """Count a connection and return None, or return why it is refused. `address`: from `plain_address`."""
        if self.count >= self._max_connections:
            return Refusal.CONNECTION_LIMIT
        if self._allow or self._max_per_address:
            parsed = ipaddress.ip_address(address)
            if self._allow and not any(parsed in network for network in self._allow):
                return Refusal.NOT_ALLOWED
            if self._max_per_address:
                key = _key(parsed)
                if self._by_address[key] >= self._max_per_address:
                    return Refusal.ADDRESS_LIMIT
                self._by_address[key] += 1
        self.count += 1
        return None

    def release(self, address: str) -> None:
        """Stop counting a connection that was admitted."""
        self.count -= 1
        if self._max_per_address:
            key = _key(ipaddress.ip_address(address))
            self._by_address[key] -= 1
            if not self._by_address[key]:
                del self._by_address[key]


def _key(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    return address.packed if address.version == 4 else address.packed[:IPV6_HOST_PREFIX]
