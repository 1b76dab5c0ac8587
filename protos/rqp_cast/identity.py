"""When two certain messages are the same (rqp_cast.md 2.3, 5.4)."""

import hashlib

from protos.rqp_cast.wire import DATA_HEAD, U32, encode_address, packed


def identity(address: str, id: int) -> bytes:
    """Return the key under which a received id is kept: 8 bytes, the sending agent's address and the id."""
    return encode_address(address) + packed(U32, id)


def fingerprint(key: int, data: bytes) -> bytes:
    """Return the digest kept of the content: 32 bytes, the SHA-256 of key, size and data."""
    return hashlib.sha256(packed(DATA_HEAD, key, len(data)) + data).digest()
