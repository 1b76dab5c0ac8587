"""The messages of ring nodes: on a link (ring.md 2), and to all nodes on the network (3)."""

from __future__ import annotations

from dataclasses import dataclass

BEACON_PORT = 8083  # UDP; older nodes of the originals: OPEN on 8084, FIND on 8085 (1.1)
RING_PORT = 8085  # TCP, for the predecessor
CLIENT_PORT = 9000  # TCP, for queue clients
MAX_GROUP = 65535  # groups are 1 to this (3.3)

ACK = b"A"  # 2.2
TTL = 255  # of LOOPs that this node begins (2.3)
OTHERS_TTL = 64  # of proposals of other nodes; a node's own come back with more (4.6)
MAX_USER = 16384  # octets of a USER's payload that is accepted and forwarded (2.1)
MAX_USER_SENT = 16383  # of one that this node begins: the document's limit
MAX_LOOP = 16384  # octets of a LOOP's payload (2.3)
MAX_NAME = 255  # octets of a node's name: a length is one octet
MAX_NAMES = 470  # octets of the three names of a beacon together (1.2)
MAX_BEACON = 512  # octets


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a connection accepts (2.5, 5.2)."""

    max_message_bytes: int = 1 << 20  # of a client's message; longer ones are refused
    max_discard_bytes: int = 16 << 20  # longer ones are refused and the connection closed
    request_timeout_s: float = 30.0  # how long a message or request may stay unfinished on the wire


@dataclass(frozen=True, slots=True)
class User:
    """A message for the application layer (2.4)."""

    payload: bytes  # up to MAX_USER octets


@dataclass(frozen=True, slots=True)
class Leader:
    """Proposes a node as the ring's leader (2.3, 4.2)."""

    name: bytes  # of the proposed node
    ttl: int = TTL  # lowered by each node; 0: not forwarded


@dataclass(frozen=True, slots=True)
class LinkBroken:
    """The named node has lost its predecessor, or found another ring (2.3, 4.4)."""

    name: bytes  # of the node
    ttl: int = TTL  # lowered by each node; 0: not forwarded


@dataclass(frozen=True, slots=True)
class BreakLinkForced:
    """Close this link and build it again (2.3)."""

    ttl: int = TTL  # lowered by each node; 0: not forwarded


@dataclass(frozen=True, slots=True)
class Unusable:
    """A LOOP that cannot be interpreted: answered, counted, never forwarded (2.3)."""

    reason: str  # a stable label
    ttl: int = 0  # as sent


Loop = Leader | LinkBroken | BreakLinkForced  # messages between nodes about the ring itself
Message = User | Loop | Unusable  # what a `Connection` yields


@dataclass(frozen=True, slots=True)
class Open:
    """A tail that waits for a predecessor (3.1)."""

    group: int  # 1 to MAX_GROUP
    leader: bytes  # of the sender's ring
    node: bytes  # the sender: a host to connect to
    service: bytes  # its TCP port in decimal, or the name of a service


@dataclass(frozen=True, slots=True)
class Find:
    """The leader of a ring that looks for other rings of its group (3.2)."""

    group: int  # 1 to MAX_GROUP
    leader: bytes  # the sender


Beacon = Open | Find  # datagrams to all nodes of the network
