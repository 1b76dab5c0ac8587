"""Recognise TLS at a plain port: the protocol's own error would mislead (RFC 8446, 4.1.2, 5.1)."""

from __future__ import annotations

import re

TLS_FAULT = (
    "the connection begins with TLS, which this port does not accept: switch TLS off in the client, or set `tls` of "
    "this listener"
)
_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..\x01", re.DOTALL)  # a handshake record with a ClientHello


def begins_tls(first: bytes) -> bool:
    """Return whether the first octets of a connection are a ClientHello.

    A valid message of another protocol may look the same: use this only to explain a refusal.
    """
    return _HELLO.match(first) is not None
