"""Processes, who is connected to them, and the systems that they speak with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Time


class Peer(Shape):
    name: str
    owner: str
    spec: dict[str, Any] | None
    unreadable: str | None = Field(description="why this version cannot read it; null: it can")


class PeerPage(Shape):
    items: list[Peer]
    next: Cursor


class RingGroup(Shape):
    group: int
    is_closed: bool | None = Field(description="one whole ring; null: part of it cannot be seen from here")
    leaders: list[str]
    nodes: list[dict[str, Any]]
    chains: list[dict[str, Any]]


class Rings(Shape):
    groups: list[RingGroup]


class Listener(Shape):
    name: str
    address: str


class Edge(Shape):
    """A process that serves, as it told of itself at `seenAt`."""

    process: str
    edge: str
    version: str
    host: str
    pid: int
    started_at: Time
    seen_at: Time
    ready: bool
    unready: str | None = Field(description="why it cannot serve now; null: it can")
    listeners: list[Listener]
    connections: int
    health: str | None = Field(
        description="where its pages for health and metrics are; null: it does not know"
    )


class EdgePage(Shape):
    items: list[Edge]
    next: Cursor


class ConnectionDetail(Shape):
    peer_name: str | None = Field(
        description="what the peer says it is: of a link of the text service the id of its store; null: nothing"
    )
    unsent_octets: int = Field(description="wait here, as the peer does not read")
    held_octets: int = Field(description="of requests that are not whole")


class Connection(Shape):
    id: str
    edge: str
    process: str
    listener: str
    peer: str
    certificate: str | None = Field(description="whom the peer's certificate names")
    opened_at: Time
    received_octets: int
    sent_octets: int
    state: str
    detail: ConnectionDetail


Silent = Annotated[list[str], Field(description="processes that did not answer in time")]


class ConnectionPage(Shape):
    items: list[Connection]
    next: Cursor
    silent: Silent


class Closed(Shape):
    id: str
    was: Literal["closed", "reset"]


class Subscription(Shape):
    """Of the text service."""

    connection: str
    process: str
    peer: str
    certificate: str | None
    id: str
    pattern: str
    is_behind: bool = Field(description="it is served from the log, as it reads slowly or began in the past")


class SubscriptionPage(Shape):
    items: list[Subscription]
    next: Cursor
    silent: Silent
