"""What nodes of a ring say to each other: on a link (ring.md 2), and to everybody on the network (3)."""

from __future__ import annotations

from dataclasses import dataclass

BEACON_PORT = 8083  # UDP; older nodes of the originals: OPEN on 8084, FIND on 8085 (1.1)
RING_PORT = 8085  # TCP, for the predecessor
CLIENT_PORT = 9000  # TCP, for those who use queues
MAX_GROUP = 65535  # groups are 1 to this (3.3)

ACK = b"A"  # 2.2
TTL = 255  # of LOOPs that we begin (2.3)
OTHERS_TTL = 64  # of proposals of others; one's own come back with more (4.6)
ORIGINAL_TTL = 65025  # of those that the original nodes begin
MAX_USER = 16384  # octets of a USER's payload that we take, and pass on (2.1)
MAX_USER_SENT = 16383  # of one that we begin: the document's bound
MAX_LOOP = 16384
MAX_NAME = 255  # octets of a node's name: a length is one octet
MAX_NAMES = 470  # octets that the three names of a beacon have together (1.2)
MAX_BEACON = 512  # octets


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection accepts (2.5, 5.2)."""

    max_message_bytes: int = 1 << 20  # of a client's message; longer ones are refused
    max_discard_bytes: int = 16 << 20  # longer ones are not even read: refused and closed
    request_timeout_s: float = 30.0  # how long a message or request may stay unfinished on the wire


@dataclass(frozen=True, slots=True)
class User:
    """For the application layer (2.4)."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Leader:
    """Proposes a node as the ring's leader (2.3, 4.2)."""

    name: bytes
    ttl: int = TTL


@dataclass(frozen=True, slots=True)
class LinkBroken:
    """The node of this name lost its predecessor, or found another one (2.3, 4.4)."""

    name: bytes
    ttl: int = TTL


@dataclass(frozen=True, slots=True)
class BreakLinkForced:
    """Close this link and build again (2.3)."""

    ttl: int = TTL


@dataclass(frozen=True, slots=True)
class Unusable:
    """A LOOP that nobody can act upon: answered, counted, never forwarded (2.3)."""

    reason: str  # a stable label
    ttl: int = 0


Loop = Leader | LinkBroken | BreakLinkForced
Message = User | Loop | Unusable


@dataclass(frozen=True, slots=True)
class Open:
    """A tail waits for a predecessor (3.1)."""

    group: int
    leader: bytes
    node: bytes
    service: bytes  # its TCP port in decimal, or the name of a service


@dataclass(frozen=True, slots=True)
class Find:
    """The leader of a ring looks for other rings of its group (3.2)."""

    group: int
    leader: bytes


Beacon = Open | Find
