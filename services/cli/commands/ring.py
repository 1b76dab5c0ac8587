"""penstock ring status: what the nodes of rings have written of themselves."""

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
GROUPS = click.IntRange(1, 0xFFFF)


@click.group()
def ring() -> None:
    """See how rings are."""


@ring.command()
@click.option("--group", "wanted", type=GROUPS, metavar="GROUP", help="only this one  [all]")
@store_command
async def status(store: Store, output: Output, wanted: int | None) -> None:
    """Show the nodes of each group, in the order of their ring.

    Nodes with other stores are seen by their neighbours only. Ends with 4 if there is no node.
    """
    now_ms = await store.now_ms()
    nodes = [node for node in await store.ring_nodes.all() if wanted in (None, node.group)]
    if not nodes:
        where = "any ring" if wanted is None else f"group {wanted}"
        raise not_found(
            f"no node of {where} has told this store of itself: is there a `penstock serve ring`?"
        )
    for group in groups(nodes, now_ms):
        _show(output, group)


def _show(output: Output, group: Group) -> None:
    if output.as_json:
        output.record(group.as_json())
        return
    output.line(_line(group))
    for each in group.chains:
        output.line(f"  {each}")
    output.table(
        ("node", "predecessor", "successor", "leader", "members#", "last break", "written"),
        _rows(group.nodes),
    )
    for seen in group.nodes:
        if seen.is_away:
            output.line(f"{seen.name} takes no part: {seen.state['away']}")


def _line(group: Group) -> str:
    led = f"led by {', '.join(group.leaders)}" if group.leaders else "without a leader"
    if group.is_ring:
        return f"group {group.number}: a ring of {len(group.chains[0].names)}, {led}"
    nodes = count(len(group.nodes), "node")
    return f"group {group.number}: {nodes} with this store, {_shape(group)}, {led}"


def _shape(group: Group) -> str:
    if group.is_ring is None:
        heard = any(not seen.is_silent for seen in group.nodes)
        return "part of a ring that is not all seen from here" if heard else "all silent"
    return "not one ring" if any(each.is_closed for each in group.chains) else "no ring"


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
    """Whom it goes by, or went by until nobody led any more."""
    if told.get("is_leader"):
        return "itself"
    leader = str(told.get("leader", ""))
    if told.get("is_led", True):
        return leader
    return "none" if leader == told.get("name") else f"none, was {leader}"


def _link(link: dict[str, Any] | None, seen: NodeState) -> str:
    """Who it is, or where he comes from, and for how long."""
    if link is None:
        return "none"
    return f"{link['name'] or link['address']}, {_since(link['since_s'], seen)}"


def _last_break(last: dict[str, Any] | None, seen: NodeState) -> str:
    if last is None:
        return "none"
    return f"{last['side']}, {_since(last['ago_s'], seen)} ago: {last['why']}"


def _since(age_s: float, seen: NodeState) -> str:
    """An age as it is now."""
    return age(round(age_s * 1000) + seen.written_ms)
