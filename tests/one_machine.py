"""Addresses for tests of Peers."""

from ipaddress import IPv4Address, IPv6Address


def is_of_one_machine(address: IPv4Address | IPv6Address) -> bool:
    """Return whether a Peer may have the address: broadcast, multicast and wildcard addresses are excluded."""
    broadcast = ("127.255.255.255", "255.255.255.255")
    return not (address.is_multicast or address.is_unspecified or str(address) in broadcast)
