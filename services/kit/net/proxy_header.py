"""Recognise the PROXY protocol header, which load balancers put before a client's input.

No port accepts it: anyone could send one with a forged address. It gets an error of its own because the protocol's own
error would mislead. https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, 2.1 and 2.2
"""

from __future__ import annotations

_VERSIONS = {
    b"PROXY TCP4 ": 1,
    b"PROXY TCP6 ": 1,
    b"PROXY UNKNOWN": 1,
    b"\r\n\r\n\x00\r\nQUIT\n": 2,
}


def proxy_version(first: bytes) -> int | None:
    """Return the version of the PROXY header at the beginning of a connection, or None.

    A sender must send the header in one piece (2.2), so the first chunk is enough.
    """
    return next((version for begin, version in _VERSIONS.items() if first.startswith(begin)), None)


def proxy_fault(version: int) -> str:
    """Return the error for such a connection."""
    return (
        f"the connection begins with a PROXY protocol header (version {version}), which this port does not accept: "
        "switch it off at the load balancer in front of it"
    )
