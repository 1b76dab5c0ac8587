"""Names of queues as Redis keeps them: octets, which Python's text holds by surrogate escapes."""

from __future__ import annotations


def encode_name(name: str) -> bytes:
    """Return the octets of a name."""
    return name.encode("utf-8", "surrogateescape")


def decode_name(name: bytes) -> str:
    """Return the name of these octets."""
    return name.decode("utf-8", "surrogateescape")
