"""Classify hosts without a name lookup: only literal addresses; what a name resolves to may change."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def literal(host: str) -> Address | None:
    """Return the address that `host` is, as the system reads it (`127.1`, too); None for a name."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        return getattr(address, "ipv4_mapped", None) or address
    with contextlib.suppress(ValueError, OSError):
        return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


def is_of_this_machine_alone(host: str) -> bool:
    """Return whether `host` is a loopback address."""
    address = literal(host)
    return address is not None and address.is_loopback


def is_of_others(host: str) -> bool:
    """Return whether `host` is an address of a network, or of all networks (0.0.0.0 and ::)."""
    address = literal(host)
    return address is not None and not address.is_loopback
