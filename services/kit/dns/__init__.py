"""Resolve names and open TCP connections, within a time limit.

It knows no protocol above TCP.
"""

from services.kit.dns.lookup import resolve
from services.kit.dns.socket_connect import connect, writable

__all__ = [
    "connect",
    "resolve",
    "writable",
]
