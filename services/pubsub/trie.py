"""A radix trie: items under byte strings, found by all texts that begin with these (pubsub.md 2, `Pattern`).

    ""  ─ "ord" ─┬─ "er."  : b"order."         Each node but the root holds items or has at least two children;
                 └─ "inal" : b"ordinal"        a removal cuts off other nodes or joins them with their child.

Walks are loops and compare labels in place, so the cost of an operation is linear in the length of the prefix or text.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")


class Nothing(Enum):
    """The absence of items; a type of its own, so that None may be an item."""

    HELD = 0


class Many(dict[ItemT, int]):
    """Several items under one key, with counts; adding and removing are O(1) on average."""

    __slots__ = ("peak", "total")
    SMALL: Final = 32  # items; smaller tables are not shrunk

    def __init__(self) -> None:
        super().__init__()
        self.total = 0  # sum of all counts
        self.peak = 0  # most different items since the table was last shrunk

    def add(self, item: ItemT) -> None:
        """Add an item once."""
        self[item] = self.get(item, 0) + 1
        self.total += 1
        self.peak = max(self.peak, len(self))

    def remove(self, item: ItemT) -> None:
        """Remove an item once. Raises KeyError if it is not there."""
        self[item] -= 1
        self.total -= 1
        if not self[item]:
            del self[item]
            self._shrink()

    def put_into(self, found: list[ItemT]) -> None:
        """Append every item to `found`, as often as it was added."""
        if self.total == len(self):
            found.extend(self)
        else:
            for item, count in self.items():
                found.extend([item] * count)

    def _shrink(self) -> None:
        """Rebuild the dict at a quarter: it keeps its largest size, and iterating costs as much."""
        if self.peak > self.SMALL and len(self) * 4 < self.peak:
            rest = dict(self)
            self.clear()
            self.update(rest)
            self.peak = len(self)


# Most keys have one item, which needs no container.
Held: TypeAlias = ItemT | Many[ItemT] | Nothing


def with_item(held: Held[ItemT], item: ItemT) -> Held[ItemT]:
    """Return what is held with one more item."""
    if held is Nothing.HELD:
        return item
    if isinstance(held, Many):
        held.add(item)
        return held
    many: Many[ItemT] = Many()
    many.add(held)
    many.add(item)
    return many


def without_item(held: Held[ItemT], item: ItemT) -> Held[ItemT]:
    """Return what is held with one item less. Raises KeyError if the item is not there."""
    if isinstance(held, Many):
        held.remove(item)
        return held if held.total > 1 else next(iter(held))
    if held is Nothing.HELD or held != item:
        raise KeyError(item)
    return Nothing.HELD


def put_into(found: list[ItemT], held: Held[ItemT]) -> None:
    """Append every item held to `found`, as often as it was added."""
    if isinstance(held, Many):
        held.put_into(found)
    elif held is not Nothing.HELD:
        found.append(held)


class Node(Generic[ItemT]):
    """`label`: what its key has beyond its parent's; children are keyed by the first byte of theirs."""

    __slots__ = ("children", "held", "label")

    def __init__(self, label: bytes) -> None:
        self.label = label
        self.held: Held[ItemT] = Nothing.HELD
        self.children: dict[int, Node[ItemT]] | None = None  # not an empty dict: most nodes are leaves

    def attach(self, child: Node[ItemT]) -> None:
        """Add a child."""
        if self.children is None:
            self.children = {}
        self.children[child.label[0]] = child

    def detach(self, child: Node[ItemT]) -> None:
        """Remove a child."""
        assert self.children is not None
        del self.children[child.label[0]]
        if not self.children:
            self.children = None

    def split(self, size: int) -> Node[ItemT]:
        """Return a new node for the first `size` bytes of the label, with this one below it."""
        above: Node[ItemT] = Node(self.label[:size])
        self.label = self.label[size:]
        above.attach(self)
        return above

    def absorb_only_child(self) -> None:
        """Merge with the child if this node holds nothing and has one child."""
        if self.held is Nothing.HELD and self.children is not None and len(self.children) == 1:
            (child,) = self.children.values()
            self.label, self.held, self.children = self.label + child.label, child.held, child.children


class Trie(Generic[ItemT]):
    """Hashable items under prefixes; an item may be under several, and several times under one."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Node[ItemT] = Node(b"")

    def add(self, prefix: bytes, item: ItemT) -> None:
        """Add an item under a prefix."""
        node = self._node_for(prefix)
        node.held = with_item(node.held, item)

    def remove(self, prefix: bytes, item: ItemT) -> None:
        """Remove an item once, and nodes no longer needed. Raises KeyError if the item is not there."""
        parent, node = self._find(prefix)
        node.held = without_item(node.held, item)
        if parent is None or node.held is not Nothing.HELD:
            return
        if node.children is not None:
            node.absorb_only_child()
            return
        parent.detach(node)
        if parent is not self.root:
            parent.absorb_only_child()

    def match(self, text: bytes, found: list[ItemT]) -> None:
        """Append to `found` every item whose prefix the text begins with, from the shortest to the longest."""
        node, position, size = self.root, 0, len(text)
        put_into(found, node.held)
        while node.children is not None and position < size:
            child = node.children.get(text[position])
            if child is None or not text.startswith(child.label, position):
                return
            position += len(child.label)
            put_into(found, child.held)
            node = child

    def _find(self, prefix: bytes) -> tuple[Node[ItemT] | None, Node[ItemT]]:
        """Return the parent of the node of exactly this prefix, and the node. Raises KeyError if it is missing."""
        parent, node, position = None, self.root, 0
        while position < len(prefix):
            child = None if node.children is None else node.children.get(prefix[position])
            if child is None or not prefix.startswith(child.label, position):
                raise KeyError(prefix)
            parent, node, position = node, child, position + len(child.label)
        return parent, node

    def _node_for(self, prefix: bytes) -> Node[ItemT]:
        """Return the node of exactly this prefix; create it if it is missing."""
        node, position = self.root, 0
        while position < len(prefix):
            child = None if node.children is None else node.children.get(prefix[position])
            if child is None:
                child = Node(prefix[position:])
                node.attach(child)
            elif not prefix.startswith(child.label, position):
                child = child.split(_common(child.label, prefix, position))
                node.attach(child)
            node, position = child, position + len(child.label)
        return node


def _common(label: bytes, prefix: bytes, position: int) -> int:
    """Return how many bytes the label and the prefix from `position` on have in common; as integers, for speed."""
    size = min(len(label), len(prefix) - position)
    difference = int.from_bytes(label[:size]) ^ int.from_bytes(prefix[position : position + size])
    return size - (difference.bit_length() + 7) // 8
