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
    "--group", "wanted", type=click.IntRange(1, 0xFFFF), metavar="GROUP", help="only this group  [all]"
)
@store_command
async def status(store: Store, output: Output, wanted: int | None) -> None:
    """Show the nodes of each group in ring order.

    Nodes that use other stores appear only as neighbours. Ends with 4 if there is no node.
    """
    now_ms = await store.now_ms()
    nodes = [node for node in await store.ring_nodes.all() if wanted in (None, node.group)]
    if not nodes:
        where = "any ring" if wanted is None else f"group {wanted}"
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
    for seen in group.nodes:
        if seen.is_away:
            output.line(f"{seen.name} is not taking part: {seen.state['away']}")


def _line(group: Group) -> str:
    led = f"led by {', '.join(group.leaders)}" if group.leaders else "without a leader"
    if group.is_ring:
        return f"group {group.number}: a ring of {len(group.chains[0].names)}, {led}"
    nodes = count(len(group.nodes), "node")
    return f"group {group.number}: {nodes} with this store, {_shape(group)}, {led}"


def _shape(group: Group) -> str:
    if group.is_ring is None:
        heard = any(not seen.is_silent for seen in group.nodes)
        return "part of a ring, the rest is not visible from this store" if heard else "all silent"
    return "several rings" if any(each.is_closed for each in group.chains) else "no ring"


def _rows(nodes: Iterable[NodeState]) -> Iterator[tuple[str, ...]]:
    for seen in nodes:
        told = seen.state
        yield (
            seen.name,
            _link(told.get("predecessor"), seen),
            _link(told.get("successor"), seen),
            _leader(told),
            str(told.get("member_count", "")),
            _last_break(told.get("last_break"), seen),
            f"silent for {age(seen.written_ms)}" if seen.is_silent else f"{age(seen.written_ms)} ago",
        )


def _leader(told: dict[str, Any]) -> str:
    """Return the leader that the node follows, or the last one it followed."""
    if told.get("is_leader"):
        return "itself"
    leader = str(told.get("leader", ""))
    if told.get("is_led", True):
        return leader
    return "none" if leader == told.get("name") else f"none, was {leader}"


def _link(link: dict[str, Any] | None, seen: NodeState) -> str:
    """Return the neighbour's name or address, and since when it is linked."""
    if link is None:
        return "none"
    return f"{link['name'] or link['address']}, {_since(link['since_s'], seen)}"


def _last_break(last: dict[str, Any] | None, seen: NodeState) -> str:
    if last is None:
        return "none"
    return f"{last['side']}, {_since(last['ago_s'], seen)} ago: {last['why']}"


def _since(age_s: float, seen: NodeState) -> str:
    """Return the present age of what was age_s old when the node wrote it."""
    return age(round(age_s * 1000) + seen.written_ms)
