"""Recognise the PROXY protocol, which load balancers put before everything that a client sends.

No port takes it: the address in it could be anyone's. It is named, because a protocol's own error would mislead.
https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, 2.1 and 2.2
"""

from __future__ import annotations

_VERSIONS = {
    b"PROXY TCP4 ": 1,
    b"PROXY TCP6 ": 1,
    b"PROXY UNKNOWN": 1,
    b"\r\n\r\n\x00\r\nQUIT\n": 2,
}


def proxy_version(first: bytes) -> int | None:
    """Return the version of the header that the first octets of a connection are, None if they are none.

    A sender must send the header in one piece (2), so the first piece that arrives is enough to look at.
    """
    return next((version for begin, version in _VERSIONS.items() if first.startswith(begin)), None)


def proxy_fault(version: int) -> str:
    """Say what to do about it."""
    return (
        f"the connection begins with a PROXY protocol header (version {version}), which this port does not take: "
        "switch it off at the load balancer in front of it"
    )
