"""Connections of all processes, and who subscribes to what: asked when somebody wants to know."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from services.console.api.asking import Asked, Item, ask_page
from services.console.contract.moments import moment
from services.console.contract.problems import Problem
from services.console.core.route import Answer, Call
from services.console.queries.paging import Paged
from services.store.processes import Answer as Said

CLOSE_S = 5.0  # within which a process has to say that it closes a connection
CONNECTIONS = Asked("connections", "connections", "after", lambda start, index, item: int(item["number"]))
SUBSCRIPTIONS = Asked("subscriptions", "subscriptions", "skip", lambda start, index, item: start + index + 1)


class ConnectionsQuery(Paged):
    edge: str = Field("", max_length=63, description="only those of this edge")
    named: bool = Field(
        False,
        description="only those whose peers say who they are: links of the text service, by their stores",
    )


async def list_(call: Call) -> Answer:
    now_ms = await call.console.store.now_ms()

    query, only = call.query, {"named": True} if call.query.named else {}

    def tell(said: Said, item: Item) -> dict[str, Any] | None:
        if query.named and item.get("name") is None:  # an edge of before answers all
            return None
        return _connection(said, item, now_ms)

    with call.console.room.asking.one():
        return Answer(await ask_page(call.console.store, CONNECTIONS, query, query.edge, tell, only))


def _connection(said: Said, item: Item, now_ms: int) -> dict[str, Any]:
    return {
        "id": f"{item['id']}@{said.process}",
        "edge": said.edge,
        "process": said.process,
        "listener": item["listener"],
        "peer": item["peer"],
        "certificate": item["certificate"],
        "openedAt": moment(now_ms - item["ageMs"]),
        "receivedOctets": item["receivedOctets"],
        "sentOctets": item["sentOctets"],
        "state": item["phase"],
        "detail": {
            "peerName": item.get("name"),  # an edge of before does not know it
            "unsentOctets": item["unsentOctets"],
            "heldOctets": item["heldOctets"],
        },
    }


async def close(call: Call) -> Answer:
    """In order: what was written is sent before."""
    identifier, _, process = call.path["id"].partition("@")
    unknown = Problem(404, "connection_unknown", f"there is no connection {call.path['id']!r}")
    if not process:
        raise unknown
    args = {"id": identifier, "by": call.who.who}
    try:
        with call.console.room.asking.one():
            said = await call.console.store.processes.inquire("close", args, CLOSE_S, process=process)
    except ValueError:
        raise unknown from None
    if said.silent:
        text = f"process {process!r} did not answer: whether the connection is closed nobody knows"
        raise Problem(504, "no_answer", text)
    closed = [item for answer in said.answers for item in answer.items]
    if not closed:
        raise unknown
    return Answer({"id": call.path["id"], "was": closed[0]["was"]})


async def subscriptions(call: Call) -> Answer:
    with call.console.room.asking.one():
        return Answer(await ask_page(call.console.store, SUBSCRIPTIONS, call.query, "", _subscription))


def _subscription(said: Said, item: Item) -> dict[str, Any]:
    return {
        "connection": f"{item['connection']}@{said.process}",
        "process": said.process,
        "peer": item["peer"],
        "certificate": item["certificate"],
        "id": item["id"],
        "pattern": item["pattern"],
        "isBehind": item["isBehind"],
    }
