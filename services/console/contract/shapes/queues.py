"""Models of queues and their history."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Ms, Rate, Time


class QueueRates(Shape):
    """Rates per second; null: not known yet, as rates need two polls."""

    in_: Rate | None = Field(alias="in")
    out: Rate | None
    acked: Rate | None
    returned: Rate | None
    died: Rate | None


class AllRates(QueueRates):
    """Rates of all queues together."""

    in_octets: Rate | None
    out_octets: Rate | None


class QueueSummary(Shape):
    """A queue in a list."""

    name: str
    domain: str
    owner: str = Field(description="declared by: cli, file, console, edge:tmq, kubernetes shop/orders")
    paused: bool
    remote: str | None = Field(
        description="protocol over which its messages are forwarded; null: not forwarded"
    )
    ready: int
    in_flight: int
    dead: int
    bytes: int
    oldest_age_ms: Ms
    nobody_takes: bool = Field(
        description="no consumers: the oldest message has waited for a minute without a delivery seen by this console"
    )
    rates: QueueRates
    ack_level: str
    condition: str = Field(description="what is wrong with a forwarded or unreadable queue; empty: nothing")
    unreadable: str | None = Field(
        description="why this version cannot read its document, which is then left out; null: it can"
    )


class QueuePage(Shape):
    """A page of queues."""

    items: list[QueueSummary]
    next: Cursor


Complete = Annotated[
    bool,
    Field(description="false: samples are still being read, newest first; steps not read yet are null"),
]
Numbers = list[float | None]
Sizes = list[int | None]


class HistorySeries(Shape):
    """One value per step; null: unknown. Flows are rates per second, sizes are as of the end of the step."""

    depth: Sizes = Field(description="messages in the queue, including those in flight")
    in_flight: Sizes
    dead: Sizes
    oldest_age_ms: Sizes
    in_: Numbers = Field(alias="in")
    out: Numbers
    acked: Numbers
    refused: Numbers
    put_p50_ms: Numbers = Field(alias="putP50Ms", description="time to durable")
    put_p99_ms: Numbers = Field(alias="putP99Ms")
    wait_p50_ms: Numbers = Field(alias="waitP50Ms", description="time to first delivery")
    wait_p99_ms: Numbers = Field(alias="waitP99Ms")


class History(Shape):
    """Time series of a queue."""

    step_ms: Ms
    from_: Time = Field(alias="from")
    complete: Complete
    series: HistorySeries


class FlowSeries(Shape):
    """Messages per second in each step; null: unknown."""

    in_: Numbers = Field(alias="in")
    out: Numbers
    acked: Numbers
    refused: Numbers


class FlowHistory(Shape):
    """Time series of all queues together."""

    step_ms: Ms
    from_: Time = Field(alias="from")
    complete: Complete
    series: FlowSeries


class TmqName(Shape):
    """The queue's name in TMQ."""

    name: str


class RingName(Shape):
    """The queue's name in the ring."""

    name: str
    inbox: int | None = Field(description="group whose messages are added to the queue")
    outbox: int | None = Field(description="group that receives messages added to the queue")


class McaNumber(Shape):
    """The queue's ID in RQP/MCA."""

    queue_id: int


class CastKey(Shape):
    """The queue's key in RQP/cast."""

    key: int


class TextPatterns(Shape):
    """The queue's subscription and publication in the text service."""

    subscribe: list[str]
    publish: str


class Protocols(Shape):
    """Protocol bindings of a queue; null: the protocol cannot reach it."""

    tmq: TmqName
    ring: RingName
    rqp_mca: McaNumber | None
    rqp_cast: CastKey | None
    text: TextPatterns | None


class QueueDetail(QueueSummary):
    """A queue with its document and counters."""

    spec: dict[str, Any] = Field(description="the document's spec as in queues.yaml, without default values")
    counters: dict[str, int] = Field(description="totals since the queue was created")
    reserved_by: str
    reserved_for_ms: Ms
    owned_by: str = Field(description="process that forwards its messages; empty: none")
    protocols: Protocols
    unkept: bool = Field(description="the store cannot honour its ack level")


class Deleted(Shape):
    """The messages that a deletion removed."""

    messages: int = Field(description="number of deleted messages and dead letters")


class Reservation(Shape):
    """A reservation of a queue."""

    queue: str
    reserved_by: str
    reserved_for_ms: Ms


class ReservationPage(Shape):
    """A page of reservations."""

    items: list[Reservation]
    next: Cursor
