"""Handlers of queues, their history, and reservations."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from pydantic import Field

from services.console.audit.detail import changed, made
from services.console.contract.etags import has_changed, must_be_new, must_match, queue_etag, unreadable_etag
from services.console.contract.problems import Problem, bad_request
from services.console.contract.shape import JSON, Shape, encode
from services.console.core.route import Answer, Call
from services.console.history.sample_history import MAX_MINUTES
from services.console.live.rows import RATES, Row, detail_of, last_delivery, rates_of
from services.console.queries.paging import Paged, page_of
from services.store import Queue, QueueSpec
from services.store.model import (
    QueueChanged,
    QueueExists,
    QueueUnknown,
    check_name,
    parse_leniently,
    unknown_after_commit,
)

OWNER = "console"
LIST, RESERVED = "queues", "reservations"
DELETE_ATTEMPTS = 3


class Only(StrEnum):
    """A filter by state."""

    ALL = "all"
    PAUSED = "paused"
    REMOTE = "remote"  # forwarded
    DEAD = "dead"  # has dead letters
    TROUBLE = "trouble"  # `condition` is set


class QueueProtocol(StrEnum):
    """A filter by protocol bindings; of the ring, only inboxes and outboxes count."""

    ANY = "any"
    MCA = "rqp-mca"  # has an ID, or is forwarded over it
    CAST = "rqp-cast"
    TEXT = "text"  # subscribes or publishes
    RING = "ring"  # is an inbox or an outbox


class QueuesQuery(Paged):
    """Filters of queues; all have to match."""

    name: str = Field("", description="prefix of the name")
    contains: str = Field("", description="part of the name, ignoring case")
    only: Only = Field(
        Only.ALL,
        description="remote: forwarded; dead: has dead letters; trouble: `condition` is set",
    )
    protocol: QueueProtocol = Field(
        QueueProtocol.ANY,
        description="queues that have an ID or key of the protocol, are forwarded over it, subscribe or publish "
        "(text), or are an inbox or outbox (ring)",
    )

    def apply(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that match; skip unset filters, as each costs as much as the rest of a response."""
        found = [row for row in rows if row.queue.name.startswith(self.name)]
        if self.contains:
            part = self.contains.lower()
            found = [row for row in found if part in row.queue.name.lower()]
        if self.only is not Only.ALL:
            found = [row for row in found if _has_state(row.summary, self.only)]
        if self.protocol is not QueueProtocol.ANY:
            found = [row for row in found if _has_protocol(row.queue.spec, self.protocol)]
        return found


def _has_state(summary: dict[str, Any], only: Only) -> bool:
    match only:
        case Only.PAUSED:
            return bool(summary["paused"])
        case Only.REMOTE:
            return summary["remote"] is not None
        case Only.DEAD:
            return bool(summary["dead"])
        case Only.TROUBLE:
            return bool(summary["condition"])
        case _:
            return True


def _has_protocol(spec: QueueSpec, protocol: QueueProtocol) -> bool:
    bindings, remote = spec.bindings, spec.remote.protocol.value if spec.remote is not None else None
    match protocol:
        case QueueProtocol.MCA:
            return bindings.rqp_mca.queue_id is not None or remote == protocol
        case QueueProtocol.CAST:
            return bindings.rqp_cast.key is not None or remote == protocol
        case QueueProtocol.TEXT:
            return bool(bindings.text.subscribe or bindings.text.publish)
        case QueueProtocol.RING:
            return bindings.ring.inbox is not None or bindings.ring.outbox is not None
        case _:
            return True


class ReplaceQuery(Shape):
    """Options of replacing a queue's document."""

    replace_unreadable: bool = Field(
        False,
        description="replace a document that this version cannot read; discards all of it",
    )


class DeleteQuery(Shape):
    """Options of deleting a queue."""

    if_empty: bool = Field(False, description="only if it has neither messages nor dead letters")


async def list_(call: Call) -> Answer:
    """List queues by name, from the last poll."""
    snapshot = await call.console.live.snapshot()
    rows = call.query.apply(snapshot.rows.values())
    page = page_of(LIST, rows, call.query, lambda row: row.queue.name, Row.encoded)
    # rows cache their JSON
    octets = b'{"items":[%s],"next":%s}' % (b",".join(page["items"]), encode(page["next"]))
    return Answer(octets=octets, headers={"Content-Type": JSON})


async def show(call: Call) -> Answer:
    """Show a queue, read from the store."""
    queue, unreadable = await call.console.store.catalogue.find_leniently(call.path["name"])
    return await _queue(call, queue, 200, unreadable)


async def _queue(call: Call, queue: Queue, status: int, unreadable: str = "") -> Answer:
    figures = await call.console.store.listing.stats(queue)
    row = call.console.live.row(queue.name)
    if row is not None and row.queue.qid != queue.qid:
        row = None
    rates = row.rates if row is not None else rates_of(RATES, figures, None, 0)
    now = time.monotonic()
    idle_s = now - last_delivery(figures, row, now)
    etag = await call.console.etag(queue, unreadable)
    return Answer(detail_of(queue, figures, rates, unreadable, idle_s=idle_s), status, {"ETag": etag})


async def put(call: Call) -> Answer:
    """Create a queue, or replace the document that matches If-Match."""
    name, registry = call.path["name"], call.console.store.registry
    document = await registry.document(name)
    if document is None:
        _check_name(name)
    if must_be_new(call.headers, document is not None):
        return await _create(call, name)
    if document is None:
        if "If-Match" in call.headers:
            must_match(call.headers, None)
        return await _create(call, name)
    old, unreadable = parse_leniently(name, document)
    must_match(call.headers, unreadable_etag(old, document) if unreadable else queue_etag(old))
    if unreadable and not call.query.replace_unreadable:
        text = f"this version cannot read the existing document: {unreadable}; set replaceUnreadable=true to replace it"
        raise Problem(409, "queue_unreadable", text)
    call.detail.update(changed(None if unreadable else old.spec, call.body))
    if old.owner != OWNER:
        call.detail["owner"] = [old.owner, OWNER]
    try:
        await call.console.store.catalogue.declare(name, call.body, OWNER, replace=True, seen=document)
    except QueueChanged:  # since it was read
        raise has_changed(None) from None
    return await _changed_queue(call, name, 200)


async def _changed_queue(call: Call, name: str, status: int) -> Answer:
    """Return the changed queue. Raises OutcomeUnknown if it cannot be read, as the change was made."""
    with unknown_after_commit(QueueUnknown):
        return await _queue(call, await call.console.store.catalogue.find(name), status)


async def _create(call: Call, name: str) -> Answer:
    call.detail.update(made(call.body))
    try:
        await call.console.store.catalogue.declare(name, call.body, OWNER)
    except QueueExists:  # created meanwhile
        raise Problem(412, "precondition_failed", "the queue exists already") from None
    answer = await _changed_queue(call, name, 201)
    return Answer(answer.document, 201, {**answer.headers, "Location": call.request.rel_url.raw_path})


async def delete(call: Call) -> Answer:
    """Delete a queue, retrying if it was declared again without a change meanwhile, as some clients do repeatedly."""
    for _ in range(DELETE_ATTEMPTS):
        with contextlib.suppress(QueueChanged):  # since it was read
            messages = await _delete(call)
            call.detail["messages"] = messages
            return Answer({"messages": messages})
    raise has_changed(None)


async def _delete(call: Call) -> int:
    """Delete the queue if it matches. Raises Problem, QueueChanged."""
    store, name = call.console.store, call.path["name"]
    # read before the document, so that any later declaration is noticed
    declared = await store.catalogue.declared((await store.catalogue.find_leniently(name))[0])
    queue, unreadable = await store.catalogue.find_leniently(name)
    must_match(call.headers, await call.console.etag(queue, unreadable))
    return await store.catalogue.delete(queue, if_empty=call.query.if_empty, declared=declared)


class HistoryQuery(Shape):
    """The period of a history."""

    minutes: int = Field(60, ge=1, le=MAX_MINUTES, description="length of the period")


async def history(call: Call) -> Answer:
    """Show the history of a queue."""
    queue, _ = await call.console.store.catalogue.find_leniently(call.path["name"])
    return Answer(await call.console.history.of(queue, call.query.minutes))


async def history_of_all(call: Call) -> Answer:
    """Show the rates of all queues together."""
    return Answer(await call.console.history.of_all(call.query.minutes))


async def reservations(call: Call) -> Answer:
    """List reserved queues, from the last poll."""
    snapshot = await call.console.live.snapshot()
    held = [row for row in snapshot.rows.values() if row.base["reserved_by"]]
    return Answer(page_of(RESERVED, held, call.query, lambda row: row.queue.name, _reservation))


def _reservation(row: Row) -> dict[str, Any]:
    return {
        "queue": row.queue.name,
        "reservedBy": row.base["reserved_by"],
        "reservedForMs": row.base["reserved_for_ms"],
    }


def _check_name(name: str) -> None:
    """Raise Problem for a name that is not allowed for new queues."""
    try:
        check_name(name)
    except ValueError as error:
        raise bad_request(str(error), [("name", str(error))]) from None
