"""Items under byte strings, found by all texts that begin with them: a radix trie (pubsub.md 2, `Pattern`).

    ""  ─ "ord" ─┬─ "er."  : b"order."         A node holds items or has two children at least, but for the root:
                 └─ "inal" : b"ordinal"        what a removal leaves otherwise is cut off or joined with its child.

Walks are loops, not recursion, and compare labels where they stand in the text: the cost of anything is linear in the
bytes of one prefix or text, however deep the trie is.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")


class Nothing(Enum):
    """A type of its own, so that None may be an item."""

    HELD = 0  # no item at all


class Many(dict[ItemT, int]):
    """Several items under one key, each with how often it was added; adding and removing are O(1) on average."""

    __slots__ = ("peak", "total")
    SMALL: Final = 32  # items; a table of this size is not worth making smaller

    def __init__(self) -> None:
        super().__init__()
        self.total = 0  # items, each as often as it was added
        self.peak = 0  # most different items since the table was made

    def add(self, item: ItemT) -> None:
        self[item] = self.get(item, 0) + 1
        self.total += 1
        self.peak = max(self.peak, len(self))

    def remove(self, item: ItemT) -> None:
        """Once. Raises KeyError if it is not there."""
        self[item] -= 1
        self.total -= 1
        if not self[item]:
            del self[item]
            self._shrink()

    def put_into(self, found: list[ItemT]) -> None:
        if self.total == len(self):
            found.extend(self)
        else:
            for item, count in self.items():
                found.extend([item] * count)

    def _shrink(self) -> None:
        """A dict keeps its largest size, and walking it costs as much: it is made anew at a quarter."""
        if self.peak > self.SMALL and len(self) * 4 < self.peak:
            rest = dict(self)
            self.clear()
            self.update(rest)
            self.peak = len(self)


# Most keys have one item: it stands alone then, without a container.
Held: TypeAlias = ItemT | Many[ItemT] | Nothing


def with_item(held: Held[ItemT], item: ItemT) -> Held[ItemT]:
    """What is held when one more is."""
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
    """What is held when one less is. Raises KeyError if the item is not there."""
    if isinstance(held, Many):
        held.remove(item)
        return held if held.total > 1 else next(iter(held))
    if held is Nothing.HELD or held != item:
        raise KeyError(item)
    return Nothing.HELD


def put_into(found: list[ItemT], held: Held[ItemT]) -> None:
    """Every item held, as often as it was added."""
    if isinstance(held, Many):
        held.put_into(found)
    elif held is not Nothing.HELD:
        found.append(held)


class Node(Generic[ItemT]):
    """`label` is what its key has beyond its parent's; children are found by the first byte of theirs."""

    __slots__ = ("children", "held", "label")

    def __init__(self, label: bytes) -> None:
        self.label = label
        self.held: Held[ItemT] = Nothing.HELD
        self.children: dict[int, Node[ItemT]] | None = None  # None rather than an empty dict: most are leaves

    def attach(self, child: Node[ItemT]) -> None:
        if self.children is None:
            self.children = {}
        self.children[child.label[0]] = child

    def detach(self, child: Node[ItemT]) -> None:
        assert self.children is not None
        del self.children[child.label[0]]
        if not self.children:
            self.children = None

    def split(self, size: int) -> Node[ItemT]:
        """A node for the first `size` bytes of the label, with this one below it."""
        above: Node[ItemT] = Node(self.label[:size])
        self.label = self.label[size:]
        above.attach(self)
        return above

    def absorb_only_child(self) -> None:
        """A node that holds nothing and has one child is that child, with a longer label."""
        if self.held is Nothing.HELD and self.children is not None and len(self.children) == 1:
            (child,) = self.children.values()
            self.label, self.held, self.children = self.label + child.label, child.held, child.children


class Trie(Generic[ItemT]):
    """Items under prefixes. The same item may stand under several, and several times under one. Items are hashable."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Node[ItemT] = Node(b"")

    def add(self, prefix: bytes, item: ItemT) -> None:
        node = self._node_for(prefix)
        node.held = with_item(node.held, item)

    def remove(self, prefix: bytes, item: ItemT) -> None:
        """Once, and every node that nobody needs then. Raises KeyError if the item is not there."""
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
        """Adds to `found` every item whose prefix the text begins with, from the shortest to the longest."""
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
        """The node of exactly this prefix and its parent. Raises KeyError if there is none."""
        parent, node, position = None, self.root, 0
        while position < len(prefix):
            child = None if node.children is None else node.children.get(prefix[position])
            if child is None or not prefix.startswith(child.label, position):
                raise KeyError(prefix)
            parent, node, position = node, child, position + len(child.label)
        return parent, node

    def _node_for(self, prefix: bytes) -> Node[ItemT]:
        """The node of exactly this prefix, made if there is none."""
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
    """How many bytes the label has in common with the prefix from `position` on; as numbers, for speed."""
    size = min(len(label), len(prefix) - position)
    difference = int.from_bytes(label[:size]) ^ int.from_bytes(prefix[position : position + size])
    return size - (difference.bit_length() + 7) // 8
