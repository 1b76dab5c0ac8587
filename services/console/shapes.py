"""What the API answers: handlers make plain dictionaries of these shapes, tests hold them to it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from services.console.operations import Shape
from services.console.roles import Role

Time = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 in UTC, by the store's clock")
]
Ms = Annotated[int, Field(description="milliseconds")]
Rate = Annotated[float, Field(description="a second")]
Base64 = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]
Cursor = Annotated[str | None, Field(description="where the next page begins; null: this was the last one")]


class Fault(Shape):
    at: str
    message: str


class ProblemShape(Shape):
    """RFC 9457. `label` is stable, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    label: str
    errors: list[Fault] | None = None


class QueueRates(Shape):
    """null: not known yet, as rates need two looks."""

    in_: Rate | None = Field(alias="in")
    out: Rate | None
    acked: Rate | None
    returned: Rate | None
    died: Rate | None


class AllRates(QueueRates):
    in_octets: Rate | None
    out_octets: Rate | None


class QueueSummary(Shape):
    name: str
    domain: str
    owner: str = Field(description="who declared it: cli, file, console, edge:tmq, kubernetes shop/orders")
    paused: bool
    remote: str | None = Field(
        description="the protocol that carries its messages elsewhere; null: it is no such queue"
    )
    ready: int
    in_flight: int
    dead: int
    bytes: int
    oldest_age_ms: Ms
    rates: QueueRates
    ack_level: str
    condition: str = Field(description="what is wrong with a queue that leads elsewhere; empty: nothing")


class QueuePage(Shape):
    items: list[QueueSummary]
    next: Cursor


Numbers = list[float | None]
Sizes = list[int | None]


class HistorySeries(Shape):
    """A value each step; null: nothing is known. Flows are of a second; of sizes, how they stood at the step's end."""

    depth: Sizes = Field(description="messages that it held, also those that were given out")
    in_flight: Sizes
    dead: Sizes
    oldest_age_ms: Sizes
    in_: Numbers = Field(alias="in")
    out: Numbers
    acked: Numbers
    refused: Numbers
    put_p50_ms: Numbers = Field(alias="putP50Ms", description="from a request to its durable answer")
    put_p99_ms: Numbers = Field(alias="putP99Ms")
    wait_p50_ms: Numbers = Field(alias="waitP50Ms", description="a message's age when it was first given out")
    wait_p99_ms: Numbers = Field(alias="waitP99Ms")


class History(Shape):
    step_ms: Ms
    from_: Time = Field(alias="from")
    series: HistorySeries


class FlowSeries(Shape):
    """Messages a second in each step; null: nothing is known."""

    in_: Numbers = Field(alias="in")
    out: Numbers
    acked: Numbers
    refused: Numbers


class FlowHistory(Shape):
    step_ms: Ms
    from_: Time = Field(alias="from")
    series: FlowSeries


class TmqName(Shape):
    name: str


class RingName(Shape):
    name: str
    inbox: int | None = Field(description="the group whose messages are put in")
    outbox: int | None = Field(description="the group that gets what is put in")


class McaNumber(Shape):
    queue_id: int


class CastKey(Shape):
    key: int


class TextPatterns(Shape):
    subscribe: list[str]
    publish: str


class Protocols(Shape):
    """How each protocol sees the queue; null: it cannot reach it."""

    tmq: TmqName
    ring: RingName
    rqp_mca: McaNumber | None
    rqp_cast: CastKey | None
    text: TextPatterns | None


class QueueDetail(QueueSummary):
    spec: dict[str, Any] = Field(
        description="the document's spec as in queues.yaml: what differs from the defaults"
    )
    counters: dict[str, int] = Field(description="since the queue was made")
    reserved_by: str
    reserved_for_ms: Ms
    owned_by: str = Field(description="which process carries its messages elsewhere; empty: none")
    protocols: Protocols
    unkept: bool = Field(description="its ack level is more than the store can keep now")


class Promises(Shape):
    levels: list[str]
    mode: str
    replicas: int
    fsyncs: bool


class StoreState(Shape):
    server: str
    version: str
    used_bytes: int | None = Field(description="null: the store does not say")
    max_bytes: int | None = Field(description="null: no bound, or the store does not say")
    promises: Promises
    alarms: list[str]


class Totals(Shape):
    queues: int
    ready: int
    in_flight: int
    dead: int
    bytes: int
    connections: int | None = Field(description="null: not known yet")
    edges: int


class Overview(Shape):
    store: StoreState
    totals: Totals
    rates: AllRates
    at: Time


class Me(Shape):
    who: str
    role: Role
    auth: Literal["off", "token", "proxy"]


class Stored(Shape):
    stored: int


class Deleted(Shape):
    messages: int = Field(description="how many messages and dead letters went with it")


class PeekedMessage(Shape):
    position: str = Field(description="where it stands in the queue; opaque")
    age_ms: Ms
    enqueued_at: Time
    origin: str
    given_out: int = Field(description="how often it was given out")
    failed: int
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class PeekPage(Shape):
    items: list[PeekedMessage]
    next: Cursor


class Letter(Shape):
    id: str
    reason: str
    error: str
    origin: str
    acquired: int
    failed: int
    redriven: int
    note: str
    enqueued_at: Time
    first_at: Time | None = Field(description="first given out; null: never")
    last_at: Time | None
    died_at: Time
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class LetterPage(Shape):
    items: list[Letter] = Field(
        description="may be fewer than asked for, even none, while `next` says to go on"
    )
    next: Cursor


class Matched(Shape):
    """What a dry run found."""

    matched: int
    reasons: dict[str, int]
    complete: bool = Field(description="false: there are more; the count took too long and was ended")


class Job(Shape):
    id: str
    kind: Literal["redrive", "purge"]
    queue: str
    target: str | None
    state: Literal["running", "done", "failed", "cancelled"]
    matched: int | None = Field(description="null: still being counted")
    moved: int = Field(description="or purged")
    missing: int = Field(description="somebody else had taken them out")
    started_at: Time
    ended_at: Time | None
    by: str
    rate: int | None = Field(description="at most so many a second; null: no bound")
    error: str | None = Field(description="why it failed, or what it waits for")


class JobPage(Shape):
    items: list[Job]
    next: Cursor


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


class Reservation(Shape):
    queue: str
    reserved_by: str
    reserved_for_ms: Ms


class ReservationPage(Shape):
    items: list[Reservation]
    next: Cursor


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


class AuditLine(Shape):
    at: Time
    who: str
    role: str
    address: str
    action: str
    target: str
    outcome: str = Field(description="done, or the label of what stood against it")
    detail: str = Field(description="JSON, cut after 1,000 octets; empty: nothing")


class AuditPage(Shape):
    items: list[AuditLine]
    next: Cursor


class Settings(Shape):
    settings: dict[str, Any]
    origins: dict[str, str]
