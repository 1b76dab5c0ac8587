"""Names are looked up, and TCP connections opened, with a time limit that holds.

It knows nothing of what is said over a connection.
"""

from services.kit.dns.lookup import resolve
from services.kit.dns.socket_connect import connect, writable

__all__ = [
    "connect",
    "resolve",
    "writable",
]
