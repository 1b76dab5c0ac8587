"""Create the first message of a TLS client."""

from __future__ import annotations

import ssl


def client_hello() -> bytes:
    """Return the first octets of a real TLS client."""
    said = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return said.read()
    raise AssertionError("a handshake without a server")
