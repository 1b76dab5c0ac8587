"""Handlers of connections and subscriptions, which query all edge processes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from services.console.api.process_queries import Item, ProcessQuery, query_page
from services.console.contract.moments import moment
from services.console.contract.problems import Problem
from services.console.core.route import Answer, Call
from services.console.queries.paging import Paged
from services.store.processes import Answer as ProcessAnswer

CLOSE_S = 5.0  # timeout of a process's answer
CONNECTIONS = ProcessQuery(
    "connections", "connections", "after", lambda start, index, item: int(item["number"])
)
SUBSCRIPTIONS = ProcessQuery(
    "subscriptions", "subscriptions", "skip", lambda start, index, item: start + index + 1
)


class ConnectionsQuery(Paged):
    """The query of connections."""

    edge: str = Field("", max_length=63, description="connections of this edge only")
    named: bool = Field(
        False,
        description="links of the text service only, whose peers report the ID of their store",
    )


async def list_(call: Call) -> Answer:
    """List connections."""
    now_ms = await call.console.store.now_ms()
    query, only = call.query, {"named": True} if call.query.named else {}

    def render(answer: ProcessAnswer, item: Item) -> dict[str, Any] | None:
        if query.named and item.get("name") is None:  # older edges ignore the filter
            return None
        return _connection(answer, item, now_ms)

    with call.console.budget.process_queries.slot():
        return Answer(await query_page(call.console.store, CONNECTIONS, query, query.edge, render, only))


def _connection(answer: ProcessAnswer, item: Item, now_ms: int) -> dict[str, Any]:
    return {
        "id": f"{item['id']}@{answer.process}",
        "edge": answer.edge,
        "process": answer.process,
        "listener": item["listener"],
        "peer": item["peer"],
        "certificate": item["certificate"],
        "openedAt": moment(now_ms - item["ageMs"]),
        "receivedOctets": item["receivedOctets"],
        "sentOctets": item["sentOctets"],
        "state": item["phase"],
        "detail": {
            "peerName": item.get("name"),  # missing from older edges
            "unsentOctets": item["unsentOctets"],
            "heldOctets": item["heldOctets"],
        },
    }


async def close(call: Call) -> Answer:
    """Close a connection after sending what was written."""
    identifier, _, process = call.path["id"].partition("@")
    unknown = Problem(404, "connection_unknown", f"connection {call.path['id']!r} does not exist")
    if not process:
        raise unknown
    args = {"id": identifier, "by": call.caller.name}
    try:
        with call.console.budget.process_queries.slot():
            answers = await call.console.store.processes.inquire("close", args, CLOSE_S, process=process)
    except ValueError:
        raise unknown from None
    if answers.silent:
        text = f"process {process!r} did not answer: it is unknown whether the connection is closed"
        raise Problem(504, "no_answer", text)
    closed = [item for answer in answers.answers for item in answer.items]
    if not closed:
        raise unknown
    return Answer({"id": call.path["id"], "was": closed[0]["was"]})


async def subscriptions(call: Call) -> Answer:
    """List subscriptions of the text service."""
    with call.console.budget.process_queries.slot():
        return Answer(await query_page(call.console.store, SUBSCRIPTIONS, call.query, "", _subscription))


def _subscription(answer: ProcessAnswer, item: Item) -> dict[str, Any]:
    return {
        "connection": f"{item['connection']}@{answer.process}",
        "process": answer.process,
        "peer": item["peer"],
        "certificate": item["certificate"],
        "id": item["id"],
        "pattern": item["pattern"],
        "isBehind": item["isBehind"],
    }
