"""Messages: put one in, look at the next ones."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.moments import moment
from services.console.contract.problems import Problem, bad_request
from services.console.contract.shape import Shape, plain
from services.console.core.route import Answer, Call
from services.console.http.bodies import aside
from services.console.queries.paging import CursorOf
from services.store import Delivery, Queue
from services.store.model import records, trace_context
from services.store.pipeline import AsyncClient

LONGEST_BODY = records.MAX_LENGTH  # octets
LONGEST_REQUEST = 4 * LONGEST_BODY // 3 + (1 << 20)  # as base64, with its attributes
OCTETS = 1024  # of each body that a list shows
MOST = 1000
READ_OCTETS = 4 << 20  # of one look, in all
LIST = "messages"

Octets = Annotated[
    int, Field(ge=0, le=LONGEST_BODY, description="so many of each body's first octets; the rest is left out")
]


class PeekQuery(BaseModel):
    model_config = Shape.model_config
    limit: int = Field(100, ge=1, le=MOST, description="messages at most")
    octets: Octets = OCTETS
    cursor: CursorOf = ""


class NewMessage(Shape):
    """`body` as text, or `bodyBase64`."""

    body: str | None = Field(None, max_length=LONGEST_BODY)
    body_base64: str | None = Field(
        None, max_length=LONGEST_REQUEST, json_schema_extra={"contentEncoding": "base64"}
    )
    attributes: dict[str, str | int | float | bool | None] = Field({}, max_length=100)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.body is None) == (self.body_base64 is None):
            raise ValueError("say body or bodyBase64, one of the two")
        return self

    @property
    def size(self) -> int:
        """About how many octets."""
        return len(self.body or self.body_base64 or "")

    def octets(self) -> bytes:
        """Raises Problem."""
        if self.body is not None:
            return self.body.encode("utf-8", "surrogateescape")
        try:
            return base64.b64decode(self.body_base64 or "", validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(
                "bodyBase64 is no base64", [("bodyBase64", "write base64 with padding")]
            ) from None


async def put(call: Call) -> Answer:
    """One message, durable at the queue's ack level when it is answered."""
    console, message = call.console, call.body
    queue = await console.store.catalogue.find(call.path["name"])
    attributes = {**_context(call), **message.attributes}
    try:
        record = await aside(message.size, lambda: records.encode(message.octets(), attributes))
    except OverflowError as error:
        raise Problem(422, "invalid", f"an attribute is no number of 64 bits: {error}") from None
    except ValueError as error:
        raise Problem(413, "too_large", str(error)) from None
    client: AsyncClient = await console.client(queue)
    refused = await client.publish(queue, [record], f"console {call.who.who}@{call.who.address}")
    if refused:
        raise refused[0][1]
    call.detail["octets"] = len(record)
    return Answer({"stored": 1}, 201)


def _context(call: Call) -> dict[str, str]:
    """Of the request's trace, where the console is traced: else the message would carry what nobody here follows."""
    header = call.headers.get(trace_context.KEY, "")
    if call.console.store.trace_propagation is None or trace_context.parse(header) is None:
        return {}
    return {trace_context.KEY: header}


async def peek(call: Call) -> Answer:
    """The next ones that are ready, in their order; none is taken. What is taken meanwhile is on no later page."""
    store, query = call.console.store, call.query
    queue, _ = await store.catalogue.find_leniently(call.path["name"])
    behind = _position(query.cursor, queue)
    now_ms = await store.now_ms()
    async with call.console.room.finding:
        deliveries = await store.get_domain(queue.domain).peek(queue, query.limit, READ_OCTETS, behind)
        found = [it for each in deliveries for it in _records(each)][: query.limit]
        call.share.take_encoded(sum(len(content.body[: query.octets]) for _, _, content in found))
        items = [_told(*each, now_ms, query.octets) for each in found]
        is_cut = len(found) >= query.limit or sum(len(each.blob) for each in deliveries) >= READ_OCTETS
    last = deliveries[-1] if is_cut and deliveries else None
    more = encode_cursor(LIST, queue.qid, str(last.position + last.count - 1)) if last is not None else None
    return Answer({"items": items, "next": more})


def _position(cursor: str, queue: Queue) -> int:
    """Behind which the page begins, -1: all. Raises Problem."""
    if not cursor:
        return -1
    qid, place = decode_cursor(cursor, LIST, 2)
    if qid != queue.qid:
        raise Problem(
            400,
            "bad_cursor",
            "this cursor is of another queue, or one that was deleted: begin anew without it",
        )
    if not (place.isascii() and place.isdigit() and len(place) < 16):
        raise Problem(400, "bad_cursor", "this is no cursor of this list")
    return int(place)


def _records(delivery: Delivery) -> Iterator[tuple[Delivery, int, records.Content]]:
    for number, record in enumerate(delivery.records()):
        yield delivery, delivery.start + number, records.decode(record)


def _told(
    delivery: Delivery, place: int, content: records.Content, now_ms: int, octets: int
) -> dict[str, Any]:
    return {
        "position": f"{delivery.entry.decode('ascii', 'replace')}:{place}",
        "ageMs": max(now_ms - delivery.enqueued_ms, 0),
        "enqueuedAt": moment(delivery.enqueued_ms),
        "origin": delivery.origin,
        "givenOut": delivery.acquired if delivery.history else 0,
        "failed": delivery.failed,
        "bytes": len(content.body),
        "attributes": plain(content.attributes),
        "bodyBase64": base64.b64encode(content.body[:octets]).decode(),
        "truncated": len(content.body) > octets,
    }
