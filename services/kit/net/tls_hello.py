"""Recognise TLS at a port that does not take it: the protocol's own error would mislead (RFC 8446, 4.1.2, 5.1)."""

from __future__ import annotations

import re

TLS_FAULT = (
    "the connection begins as TLS does, which this port does not take: switch TLS off in the client, or set `tls` of "
    "this listener"
)
_HELLO = re.compile(
    rb"\x16\x03[\x00-\x04]..\x01", re.DOTALL
)  # a record of the handshake, and in it a ClientHello


def begins_tls(first: bytes) -> bool:
    """Return whether the first octets of a connection are a ClientHello.

    A message of another protocol might begin so, too: ask only why a connection was refused.
    """
    return _HELLO.match(first) is not None
