"""Queues: list, look at, make, change, delete; who has them reserved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from pydantic import Field

from services.console.audit.detail import changed, made
from services.console.contract.etags import differs, must_be_new, must_match, queue_etag, unreadable_etag
from services.console.contract.problems import Problem, bad_request
from services.console.contract.shape import JSON, Shape, encode
from services.console.core.route import Answer, Call
from services.console.history.followed import MOST_MINUTES
from services.console.live.rows import RATES, Row, detail_of, rates_of, taken_at
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
DELETES = 3  # attempts


class Only(StrEnum):
    """Which of them: as the page has it."""

    ALL = "all"
    PAUSED = "paused"
    REMOTE = "remote"  # leads elsewhere
    DEAD = "dead"  # has dead letters
    TROUBLE = "trouble"  # its `condition` says what is wrong


class QueueProtocol(StrEnum):
    """What its document says of protocols; as TMQ and the ring know each queue by its name, there of boxes alone."""

    ANY = "any"
    MCA = "rqp-mca"  # has a number, or leads elsewhere over it
    CAST = "rqp-cast"
    TEXT = "text"  # subscribes, or publishes
    RING = "ring"  # is an inbox or an outbox


class QueuesQuery(Paged):
    """All that is said has to hold."""

    name: str = Field("", description="only those whose names begin so")
    contains: str = Field("", description="only those with this in their names, in capitals or not")
    only: Only = Field(
        Only.ALL,
        description="remote: lead elsewhere; dead: have dead letters; trouble: `condition` says what is wrong",
    )
    protocol: QueueProtocol = Field(
        QueueProtocol.ANY,
        description="only those that have a number of it, lead elsewhere over it, subscribe or publish (text), or are "
        "an inbox or outbox (ring)",
    )

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """Those that are meant: of a thousand each condition costs as much as the rest of the answer."""
        found = [row for row in rows if row.queue.name.startswith(self.name)]
        if self.contains:
            part = self.contains.lower()
            found = [row for row in found if part in row.queue.name.lower()]
        if self.only is not Only.ALL:
            found = [row for row in found if _stands(row.summary, self.only)]
        if self.protocol is not QueueProtocol.ANY:
            found = [row for row in found if _speaks(row.queue.spec, self.protocol)]
        return found


def _stands(summary: dict[str, Any], only: Only) -> bool:
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


def _speaks(spec: QueueSpec, protocol: QueueProtocol) -> bool:
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
    replace_unreadable: bool = Field(
        False,
        description="also a document that this version cannot read; whatever it says is gone then",
    )


class DeleteQuery(Shape):
    if_empty: bool = Field(False, description="only if it holds neither messages nor dead letters")


async def list_(call: Call) -> Answer:
    look = await call.console.live.look()
    rows = call.query.of(look.rows.values())
    page = page_of(LIST, rows, call.query, lambda row: row.queue.name, Row.encoded)
    items, more = (
        b",".join(page["items"]),
        encode(page["next"]),
    )  # most were encoded before: for who watches, or asked
    octets = b'{"items":[%s],"next":%s}' % (items, more)
    return Answer(octets=octets, headers={"Content-Type": JSON})


async def show(call: Call) -> Answer:
    queue, unreadable = await call.console.store.catalogue.find_leniently(call.path["name"])
    return await _told(call, queue, 200, unreadable)


async def _told(call: Call, queue: Queue, status: int, unreadable: str = "") -> Answer:
    figures = await call.console.store.listing.stats(queue)
    row = call.console.live.row(queue.name)
    if row is not None and row.queue.qid != queue.qid:
        row = None
    rates = row.rates if row is not None else rates_of(RATES, figures, None, 0)
    now = time.monotonic()
    untaken_s = now - taken_at(figures, row, now)
    etag = await call.console.etag(queue, unreadable)
    return Answer(detail_of(queue, figures, rates, unreadable, untaken_s=untaken_s), status, {"ETag": etag})


async def put(call: Call) -> Answer:
    """Makes it, or replaces the document that the caller saw."""
    name, registry = call.path["name"], call.console.store.registry
    document = await registry.document(name)
    if document is None:
        _check_name(name)
    if must_be_new(call.headers, document is not None):
        return await _make(call, name)
    if document is None:
        if "If-Match" in call.headers:
            must_match(call.headers, None)
        return await _make(call, name)
    old, unreadable = parse_leniently(name, document)
    must_match(call.headers, unreadable_etag(old, document) if unreadable else queue_etag(old))
    if unreadable and not call.query.replace_unreadable:
        text = f"this version cannot read the document that is there: {unreadable}; replaceUnreadable=true replaces it"
        raise Problem(409, "queue_unreadable", text)
    call.detail.update(changed(None if unreadable else old.spec, call.body))
    if old.owner != OWNER:
        call.detail["owner"] = [old.owner, OWNER]
    try:
        await call.console.store.catalogue.declare(name, call.body, OWNER, replace=True, seen=document)
    except QueueChanged:  # between our look and the change
        raise differs(None) from None
    return await _told_of_change(call, name, 200)


async def _told_of_change(call: Call, name: str, status: int) -> Answer:
    """Raises OutcomeUnknown: it was made, whatever keeps us from telling of it."""
    with unknown_after_commit(QueueUnknown):
        return await _told(call, await call.console.store.catalogue.find(name), status)


async def _make(call: Call, name: str) -> Answer:
    call.detail.update(made(call.body))
    try:
        await call.console.store.catalogue.declare(name, call.body, OWNER)
    except QueueExists:  # somebody else was faster
        raise Problem(412, "precondition_failed", "there is one already") from None
    answer = await _told_of_change(call, name, 201)
    return Answer(answer.document, 201, {**answer.headers, "Location": call.request.rel_url.raw_path})


async def delete(call: Call) -> Answer:
    """Also where it was declared anew meanwhile, as it was: some do that again and again."""
    for _ in range(DELETES):
        with contextlib.suppress(QueueChanged):  # between our look and the change
            messages = await _delete(call)
            call.detail["messages"] = messages
            return Answer({"messages": messages})
    raise differs(None)


async def _delete(call: Call) -> int:
    """Raises Problem, QueueChanged."""
    store, name = call.console.store, call.path["name"]
    # counted before the look: what changes the document from here on is counted, too
    declared = await store.catalogue.declared((await store.catalogue.find_leniently(name))[0])
    queue, unreadable = await store.catalogue.find_leniently(name)
    must_match(call.headers, await call.console.etag(queue, unreadable))
    return await store.catalogue.delete(queue, if_empty=call.query.if_empty, declared=declared)


class HistoryQuery(Shape):
    minutes: int = Field(60, ge=1, le=MOST_MINUTES, description="how far back")


async def history(call: Call) -> Answer:
    queue, _ = await call.console.store.catalogue.find_leniently(call.path["name"])
    return Answer(await call.console.history.of(queue, call.query.minutes))


async def history_of_all(call: Call) -> Answer:
    return Answer(await call.console.history.of_all(call.query.minutes))


async def reservations(call: Call) -> Answer:
    """A queue that somebody has reserved."""
    look = await call.console.live.look()
    held = [row for row in look.rows.values() if row.base["reserved_by"]]
    return Answer(page_of(RESERVED, held, call.query, lambda row: row.queue.name, _reservation))


def _reservation(row: Row) -> dict[str, Any]:
    return {
        "queue": row.queue.name,
        "reservedBy": row.base["reserved_by"],
        "reservedForMs": row.base["reserved_for_ms"],
    }


def _check_name(name: str) -> None:
    """Raise Problem for a name that no new queue may have; one that a client made keeps it."""
    try:
        check_name(name)
    except ValueError as error:
        raise bad_request(str(error), [("name", str(error))]) from None
