"""Queues, and what happened in them lately."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Ms, Rate, Time


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
    nobody_takes: bool = Field(
        description="messages have been ready for a minute, and as far as this console has seen nobody took one in it"
    )
    rates: QueueRates
    ack_level: str
    condition: str = Field(
        description="what is wrong with a queue that leads elsewhere, or is unreadable; empty: nothing"
    )
    unreadable: str | None = Field(
        description="why this version cannot read its document, of which it shows none then; null: it can"
    )


class QueuePage(Shape):
    items: list[QueueSummary]
    next: Cursor


Complete = Annotated[
    bool,
    Field(description="false: samples are still being read, the newest first; null are the steps of others"),
]
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
    complete: Complete
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
    complete: Complete
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


class Deleted(Shape):
    messages: int = Field(description="how many messages and dead letters went with it")


class Reservation(Shape):
    queue: str
    reserved_by: str
    reserved_for_ms: Ms


class ReservationPage(Shape):
    items: list[Reservation]
    next: Cursor
