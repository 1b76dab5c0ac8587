"""Models of processes, connections, subscriptions, peers and rings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Time


class Peer(Shape):
    """A peer."""

    name: str
    owner: str
    spec: dict[str, Any] | None
    unreadable: str | None = Field(description="why this version cannot read the document; null: it can")


class PeerPage(Shape):
    """A page of peers."""

    items: list[Peer]
    next: Cursor


class RingGroup(Shape):
    """A ring of nodes of one group."""

    group: int
    is_closed: bool | None = Field(
        description="whether the ring is complete; null: parts of it are in other stores"
    )
    leaders: list[str]
    nodes: list[dict[str, Any]]
    chains: list[dict[str, Any]]


class Rings(Shape):
    """All rings."""

    groups: list[RingGroup]


class Listener(Shape):
    """A listener of an edge."""

    name: str
    address: str


class Edge(Shape):
    """An edge process, as of its last heartbeat at `seenAt`."""

    process: str
    edge: str
    version: str
    host: str
    pid: int
    started_at: Time
    seen_at: Time
    ready: bool
    unready: str | None = Field(description="why it is not ready; null: it is ready")
    listeners: list[Listener]
    connections: int
    health: str | None = Field(description="address of its health and metrics port; null: unknown")


class EdgePage(Shape):
    """A page of edge processes."""

    items: list[Edge]
    next: Cursor


class ConnectionDetail(Shape):
    """Details of a connection."""

    peer_name: str | None = Field(
        description="name reported by the peer: on a link of the text service the ID of its store; null: none"
    )
    unsent_octets: int = Field(description="waiting because the peer does not read")
    held_octets: int = Field(description="octets of incomplete requests")


class Connection(Shape):
    """A client connection."""

    id: str
    edge: str
    process: str
    listener: str
    peer: str
    certificate: str | None = Field(description="subject of the peer's certificate")
    opened_at: Time
    received_octets: int
    sent_octets: int
    state: str
    detail: ConnectionDetail


Silent = Annotated[list[str], Field(description="processes that did not answer in time")]


class ConnectionPage(Shape):
    """A page of connections."""

    items: list[Connection]
    next: Cursor
    silent: Silent


class Closed(Shape):
    """How a connection was closed."""

    id: str
    was: Literal["closed", "reset"]


class Subscription(Shape):
    """A subscription of the text service."""

    connection: str
    process: str
    peer: str
    certificate: str | None
    id: str
    pattern: str
    is_behind: bool = Field(
        description="served from the log: a slow consumer, or a subscription that began in the past"
    )


class SubscriptionPage(Shape):
    """A page of subscriptions."""

    items: list[Subscription]
    next: Cursor
    silent: Silent
