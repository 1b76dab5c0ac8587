"""Rings: what their nodes have told of themselves."""

from __future__ import annotations

from typing import Any

from services.console.contract.moments import moment
from services.console.core.route import Answer, Call
from services.store.catalogue import Group, NodeState, groups


async def show(call: Call) -> Answer:
    store = call.console.store
    found = groups(await store.ring_nodes.all(), await store.now_ms())
    return Answer({"groups": [_group(group) for group in found]})


def _group(group: Group) -> dict[str, Any]:
    return {
        "group": group.number,
        "isClosed": group.is_ring,
        "leaders": group.leaders,
        "chains": [{"nodes": list(each.names), "isClosed": each.is_closed} for each in group.chains],
        "nodes": [_node(seen) for seen in group.nodes],
    }


def _node(seen: NodeState) -> dict[str, Any]:
    return {
        **camel(seen.state),
        "name": seen.name,
        "isLeader": seen.is_leader,
        "isSilent": seen.is_silent,
        "isAway": seen.is_away,
        "writtenAt": moment(seen.node.written_ms),
        "writtenAgoMs": seen.written_ms,
    }


def camel(told: Any) -> Any:
    """Nodes write their documents with underscores."""
    if isinstance(told, dict):
        return {_name(name): camel(value) for name, value in told.items()}
    return [camel(each) for each in told] if isinstance(told, list) else told


def _name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
