"""What the nodes of rings have told of themselves, put together: who is linked with whom, and who leads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from services.store.catalogue.ring_nodes import RingNode

SILENT_MS = 30_000  # a node writes every 10 s: one that has not for so long is gone, or has no store


def groups(nodes: list[RingNode], now_ms: int) -> list[Group]:
    """nodes: as the board has them. now_ms: by the store's clock."""
    seen = [Seen(node, now_ms) for node in nodes]
    return [
        Group(number, list(members)) for number, members in groupby(seen, key=lambda each: each.node.group)
    ]


class Seen:
    """A node as it stands on the board."""

    def __init__(self, node: RingNode, now_ms: int) -> None:
        self.node = node
        self.name = node.name
        self.written_ms = max(now_ms - node.written_ms, 0)
        self.is_silent = self.written_ms > SILENT_MS
        self.told = node.document

    @property
    def successor(self) -> str | None:
        """Of one that is silent nobody knows."""
        link = None if self.is_silent else self.told.get("successor")
        return link["name"] if link else None

    @property
    def predecessor(self) -> str | None:
        """None, too, if that one does not say who it is."""
        link = None if self.is_silent else self.told.get("predecessor")
        return link["name"] if link else None

    @property
    def leader(self) -> str | None:
        """Whom it goes by."""
        return None if self.is_silent else self.told.get("leader")

    @property
    def is_away(self) -> bool:
        """It says why it takes no part."""
        return not self.is_silent and bool(self.told.get("away"))

    @property
    def is_led(self) -> bool:
        """Whether it knows of somebody who leads now."""
        return not self.is_silent and bool(self.told.get("is_led", True))

    @property
    def is_linked(self) -> bool:
        """On both sides."""
        links = self.told.get("predecessor"), self.told.get("successor")
        return not self.is_silent and None not in links

    @property
    def is_leader(self) -> bool:
        return not self.is_silent and bool(self.told.get("is_leader"))

    def as_json(self) -> dict[str, Any]:
        return {**self.told, "written_s": round(self.written_ms / 1000, 1), "is_silent": self.is_silent}


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes that are linked, each with the next; closed: the last one with the first."""

    names: tuple[str, ...]
    is_closed: bool

    def __str__(self) -> str:
        return " → ".join([*self.names, self.names[0]] if self.is_closed else self.names)


class Group:
    def __init__(self, number: int, nodes: list[Seen]) -> None:
        self.number = number
        self.chains = list(chains(_following(nodes)))
        names = [name for each in self.chains for name in each.names]
        places = {name: place for place, name in enumerate(names)}
        self.nodes = sorted(nodes, key=lambda seen: places.get(seen.name, len(places)))
        self.leaders = [seen.name for seen in nodes if seen.is_leader] or self._leaders_elsewhere()

    @property
    def is_ring(self) -> bool | None:
        """One, of all that are there. None: there are others between those that this store knows of."""
        if any(each.is_closed for each in self.chains):
            return len(self.chains) == 1
        heard = [seen for seen in self.nodes if not seen.is_silent]
        return False if self._open_ends() or (heard and all(seen.is_away for seen in heard)) else None

    def _open_ends(self) -> set[str]:
        """Those here who lack a neighbour, and take part."""
        return {seen.name for seen in self.nodes if not (seen.is_silent or seen.is_away or seen.is_linked)}

    def _leaders_elsewhere(self) -> list[str]:
        """By their followers' account. Nobody leads an open ring, whatever they think who are far from the gap."""
        open_ends = self._open_ends()
        in_open = {name for each in self.chains if open_ends & set(each.names) for name in each.names}
        told = {seen.leader for seen in self.nodes if seen.is_led and seen.name not in in_open}
        return sorted(name for name in told - {seen.name for seen in self.nodes} if name is not None)

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.number,
            "is_ring": self.is_ring,
            "leaders": self.leaders,
            "chains": [{"nodes": list(each.names), "is_closed": each.is_closed} for each in self.chains],
            "nodes": [seen.as_json() for seen in self.nodes],
        }


def _following(nodes: list[Seen]) -> dict[str, str | None]:
    """Who is linked with whom, as far as it is told; of a node with another store its neighbours tell."""
    following = {seen.name: seen.successor for seen in nodes if not seen.is_silent}
    known = {seen.name for seen in nodes}
    for seen in nodes:
        if seen.predecessor is not None and seen.predecessor not in known:
            following[seen.predecessor] = seen.name
    return following


def chains(following: dict[str, str | None]) -> Iterator[Chain]:
    """following: who is linked with whom. Open ones first; whoever has no link at all is one alone."""
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
                names.append(after)  # of another store, or of the originals
            yield Chain(tuple(names), is_closed)
