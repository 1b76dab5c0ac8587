"""Names of queues as Redis keeps them: octets that Python's own text can hold, whatever they are."""

from __future__ import annotations


def encode_name(name: str) -> bytes:
    """Return the octets of a name."""
    return name.encode("utf-8", "surrogateescape")


def decode_name(name: bytes) -> str:
    """Return the name of these octets."""
    return name.decode("utf-8", "surrogateescape")
