"""Who may come in: allow-list, connections of the listener, connections of one address."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator

from services.kit.net.refusals import Refusal

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPV6_HOST_PREFIX = 8  # bytes: whoever has one IPv6 address has its whole /64, so that is what is counted


def _split(value: Any) -> Any:
    """An environment variable holds several networks as `10.0.0.0/8,fd00::/8`."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _network(value: Any) -> Network:
    try:
        return ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be a network such as 10.0.0.0/8: {error}") from None


Networks = Annotated[tuple[Annotated[Network, PlainValidator(_network)], ...], BeforeValidator(_split)]


def plain_address(host: str) -> str:
    """Without a scope, and an IPv4 address as itself where an IPv6 socket shows it as ::ffff:a.b.c.d."""
    host = host.partition("%")[0]
    return host.rpartition(":")[2] if host.startswith("::ffff:") and "." in host else host


class ConnectionLimits:
    """Counts the connections of one listener. `None` from `enter` means: come in, and `leave` when you go."""

    def __init__(self, allow: tuple[Network, ...], max_connections: int, max_per_address: int) -> None:
        self._allow = allow
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._inside: Counter[bytes] = Counter()
        self.count = 0

    def admit(self, address: str) -> Refusal | None:
        """`address` as `plain_address` gives it."""
        if self.count >= self._max_connections:
            return Refusal.CONNECTION_LIMIT
        if self._allow or self._max_per_address:
            parsed = ipaddress.ip_address(address)
            if self._allow and not any(parsed in network for network in self._allow):
                return Refusal.NOT_ALLOWED
            if self._max_per_address:
                key = _counted(parsed)
                if self._inside[key] >= self._max_per_address:
                    return Refusal.ADDRESS_LIMIT
                self._inside[key] += 1
        self.count += 1
        return None

    def release(self, address: str) -> None:
        self.count -= 1
        if self._max_per_address:
            key = _counted(ipaddress.ip_address(address))
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key]


def _counted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    return address.packed if address.version == 4 else address.packed[:IPV6_HOST_PREFIX]
