"""Implement `penstock ring status` from what ring nodes have written to the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from services.cli.framework.command import store_command
from services.cli.terminal.exits import not_found
from services.cli.terminal.output import Output
from services.cli.terminal.text import age, count
from services.store import Store
from services.store.catalogue import Group, NodeState, groups

COLUMNS = ("node", "predecessor", "successor", "leader", "members#", "last break", "written")


@click.group()
def ring() -> None:
    """Inspect rings."""


@ring.command()
@click.option(
    "--group", "number", type=click.IntRange(1, 0xFFFF), metavar="GROUP", help="only this group  [all]"
)
@store_command
async def status(store: Store, output: Output, number: int | None) -> None:
    """Show the nodes of each group in ring order.

    Nodes that use other stores appear only as neighbours. Ends with 4 if there is no node.
    """
    now_ms = await store.now_ms()
    nodes = [node for node in await store.ring_nodes.all() if number in (None, node.group)]
    if not nodes:
        where = "any ring" if number is None else f"group {number}"
        raise not_found(f"no node of {where} uses this store: start one with `penstock serve ring`")
    for group in groups(nodes, now_ms):
        _show(output, group)


def _show(output: Output, group: Group) -> None:
    if output.as_json:
        output.record(group.as_json())
        return
    output.line(_line(group))
    for each in group.chains:
        output.line(f"  {each}")
    output.table(COLUMNS, _rows(group.nodes))
    for node in group.nodes:
        if node.is_away:
            output.line(f"{node.name} is not taking part: {node.state['away']}")


def _line(group: Group) -> str:
    led = f"led by {', '.join(group.leaders)}" if group.leaders else "without a leader"
    if group.is_ring:
        return f"group {group.number}: a ring of {len(group.chains[0].names)}, {led}"
    nodes = count(len(group.nodes), "node")
    return f"group {group.number}: {nodes} with this store, {_shape(group)}, {led}"


def _shape(group: Group) -> str:
    if group.is_ring is None:
        heard = any(not node.is_silent for node in group.nodes)
        return "part of a ring, the rest is not visible from this store" if heard else "all silent"
    return "several rings" if any(each.is_closed for each in group.chains) else "no ring"


def _rows(nodes: Iterable[NodeState]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        state = node.state
        yield (
            node.name,
            _link(state.get("predecessor"), node),
            _link(state.get("successor"), node),
            _leader(state),
            str(state.get("member_count", "")),
            _last_break(state.get("last_break"), node),
            f"silent for {age(node.written_ms)}" if node.is_silent else f"{age(node.written_ms)} ago",
        )


def _leader(state: dict[str, Any]) -> str:
    """Return the leader that the node follows, or the last one it followed."""
    if state.get("is_leader"):
        return "itself"
    leader = str(state.get("leader", ""))
    if state.get("is_led", True):
        return leader
    return "none" if leader == state.get("name") else f"none, was {leader}"


def _link(link: dict[str, Any] | None, node: NodeState) -> str:
    """Return the neighbour's name or address, and since when it is linked."""
    if link is None:
        return "none"
    return f"{link['name'] or link['address']}, {_since(link['since_s'], node)}"


def _last_break(last: dict[str, Any] | None, node: NodeState) -> str:
    if last is None:
        return "none"
    return f"{last['side']}, {_since(last['ago_s'], node)} ago: {last['why']}"


def _since(age_s: float, node: NodeState) -> str:
    """Return the present age of what was age_s old when the node wrote it."""
    return age(round(age_s * 1000) + node.written_ms)
