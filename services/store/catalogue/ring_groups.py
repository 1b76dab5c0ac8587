"""Combine the states of ring nodes into groups, with their links and leaders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from services.store.catalogue.ring_nodes import RingNode

SILENT_MS = 30_000  # nodes write every 10 s; a silent node has stopped, or cannot reach the store


def groups(nodes: list[RingNode], now_ms: int) -> list[Group]:
    """Group the nodes that `RingNodes.all` returned; now_ms is by the store's clock."""
    seen = [NodeState(node, now_ms) for node in nodes]
    return [
        Group(number, list(members)) for number, members in groupby(seen, key=lambda each: each.node.group)
    ]


class NodeState:
    """The stored state of a node, at a given time."""

    def __init__(self, node: RingNode, now_ms: int) -> None:
        self.node = node
        self.name = node.name
        self.written_ms = max(now_ms - node.written_ms, 0)
        self.is_silent = self.written_ms > SILENT_MS
        self.state = node.document

    @property
    def successor(self) -> str | None:
        """The node that this one is linked to; None if unknown, as for silent nodes."""
        link = None if self.is_silent else self.state.get("successor")
        return link["name"] if link else None

    @property
    def predecessor(self) -> str | None:
        """The node that is linked to this one; None if unknown, or if that node has no name."""
        link = None if self.is_silent else self.state.get("predecessor")
        return link["name"] if link else None

    @property
    def leader(self) -> str | None:
        """The leader that this node follows, or None."""
        return None if self.is_silent else self.state.get("leader")

    @property
    def is_away(self) -> bool:
        """Return True if the node states a reason not to take part."""
        return not self.is_silent and bool(self.state.get("away"))

    @property
    def is_led(self) -> bool:
        """Return True if the node knows a current leader."""
        return not self.is_silent and bool(self.state.get("is_led", True))

    @property
    def is_linked(self) -> bool:
        """Return True if the node is linked on both sides."""
        links = self.state.get("predecessor"), self.state.get("successor")
        return not self.is_silent and None not in links

    @property
    def is_leader(self) -> bool:
        """Return True if the node leads its group."""
        return not self.is_silent and bool(self.state.get("is_leader"))

    def as_json(self) -> dict[str, Any]:
        """Return the state, with its age and whether the node is silent."""
        return {**self.state, "written_s": round(self.written_ms / 1000, 1), "is_silent": self.is_silent}


@dataclass(frozen=True, slots=True)
class Chain:
    """Linked nodes in order; in a closed chain the last node is linked to the first."""

    names: tuple[str, ...]
    is_closed: bool

    def __str__(self) -> str:
        return " → ".join([*self.names, self.names[0]] if self.is_closed else self.names)


class Group:
    """The nodes of one ring group, with the chains of their links."""

    def __init__(self, number: int, nodes: list[NodeState]) -> None:
        self.number = number
        self.chains = list(chains(_following(nodes)))
        names = [name for each in self.chains for name in each.names]
        places = {name: place for place, name in enumerate(names)}
        self.nodes = sorted(nodes, key=lambda seen: places.get(seen.name, len(places)))
        self.leaders = [seen.name for seen in nodes if seen.is_leader] or self._leaders_elsewhere()

    @property
    def is_ring(self) -> bool | None:
        """Return True if all nodes form one closed chain; None if nodes of other stores may be in between."""
        if any(each.is_closed for each in self.chains):
            return len(self.chains) == 1
        active = [seen for seen in self.nodes if not seen.is_silent]
        return False if self._open_ends() or (active and all(seen.is_away for seen in active)) else None

    def _open_ends(self) -> set[str]:
        """Return the participating nodes that lack a neighbour."""
        return {seen.name for seen in self.nodes if not (seen.is_silent or seen.is_away or seen.is_linked)}

    def _leaders_elsewhere(self) -> list[str]:
        """Return leaders on other stores, as named by their followers, apart from followers in open chains."""
        open_ends = self._open_ends()
        in_open = {name for each in self.chains if open_ends & set(each.names) for name in each.names}
        leaders = {seen.leader for seen in self.nodes if seen.is_led and seen.name not in in_open}
        return sorted(name for name in leaders - {seen.name for seen in self.nodes} if name is not None)

    def as_json(self) -> dict[str, Any]:
        """Return the group for the console's API and the command line."""
        return {
            "group": self.number,
            "is_ring": self.is_ring,
            "leaders": self.leaders,
            "chains": [{"nodes": list(each.names), "is_closed": each.is_closed} for each in self.chains],
            "nodes": [seen.as_json() for seen in self.nodes],
        }


def _following(nodes: list[NodeState]) -> dict[str, str | None]:
    """Return the successor of each node; those of nodes on other stores come from their neighbours' states."""
    following = {seen.name: seen.successor for seen in nodes if not seen.is_silent}
    known = {seen.name for seen in nodes}
    for seen in nodes:
        if seen.predecessor is not None and seen.predecessor not in known:
            following[seen.predecessor] = seen.name
    return following


def chains(following: dict[str, str | None]) -> Iterator[Chain]:
    """Yield the chains, open ones first; an unlinked node is a chain of its own. following: the successor by node."""
    followed = {name for name in following.values() if name is not None}
    left = dict(following)
    for name in [*(name for name in following if name not in followed), *following]:
        names: list[str] = []
        after: str | None = name
        while after is not None and after in left:
            names.append(after)
            after = left.pop(after)
        if names:
            is_closed = after == names[0]
            if after is not None and not is_closed and after not in following:
                names.append(after)  # a node of another store or of the original software
            yield Chain(tuple(names), is_closed)
