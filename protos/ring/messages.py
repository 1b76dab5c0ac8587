"""What nodes of a ring say to each other: on a link (ring.md 2), and to everybody on the network (3)."""

from __future__ import annotations

from dataclasses import dataclass

ACK = b"A"  # 2.2
TTL = 255  # of LOOPs that we begin (2.3)
ORIGINAL_TTL = 65025  # of those that the original nodes begin
MAX_USER = 16384  # octets of a USER's payload that we take (2.1)
MAX_USER_SENT = 16383  # that we send: the document's bound
MAX_LOOP = 16384
MAX_NAME = 255  # octets of a node's name: a length is one octet
MAX_NAMES = 470  # octets that the three names of a beacon have together (1.2)
MAX_BEACON = 512  # octets


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
