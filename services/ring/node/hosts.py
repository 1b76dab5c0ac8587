"""What can be told of a host without asking anybody: literal addresses alone; what a name means may change."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def literal(host: str) -> Address | None:
    """The address that `host` is, as the system reads it, which takes `127.1`, too. None of a name."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        return getattr(address, "ipv4_mapped", None) or address
    with contextlib.suppress(ValueError, OSError):
        return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


def is_of_this_machine_alone(host: str) -> bool:
    """Whether it is a loopback address."""
    address = literal(host)
    return address is not None and address.is_loopback


def is_of_others(host: str) -> bool:
    """Whether it is an address of a network, or of all of them; also 0.0.0.0 and ::."""
    address = literal(host)
    return address is not None and not address.is_loopback
