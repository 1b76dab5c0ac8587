"""Find the subscriptions that match a tag (pubsub.md 2): exact patterns in a table, prefixes in a trie.

The cost of a match grows with what it finds and with the length of the tag, not with the number of subscriptions.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from services.pubsub.trie import Held, Nothing, Trie, put_into, with_item, without_item

ItemT = TypeVar("ItemT")


class Router(Generic[ItemT]):
    """A multimap of patterns to hashable items; its length is the number of items.

    A pattern is a tag and whether it is a prefix: `abc*` is (b"abc", True) and matches all tags that begin with b"abc".
    """

    __slots__ = ("_exact", "_peak", "_prefixes", "_size")

    SMALL = 1024  # patterns; smaller tables are not shrunk

    def __init__(self) -> None:
        self._exact: dict[bytes, Held[ItemT]] = {}
        self._peak = 0  # most exact patterns since the table was last shrunk
        self._prefixes: Trie[ItemT] = Trie()
        self._size = 0

    def add(self, tag: bytes, is_prefix: bool, item: ItemT) -> None:
        """Add an item; one added twice is matched twice."""
        if is_prefix:
            self._prefixes.add(tag, item)
        else:
            self._exact[tag] = with_item(self._exact.get(tag, Nothing.HELD), item)
            self._peak = max(self._peak, len(self._exact))
        self._size += 1

    def remove(self, tag: bytes, is_prefix: bool, item: ItemT) -> None:
        """Remove an item once. Raises KeyError if it is not under this pattern."""
        if is_prefix:
            self._prefixes.remove(tag, item)
        else:
            self._remove_exact(tag, item)
        self._size -= 1

    def match(self, tag: bytes) -> list[ItemT]:
        """Return the items of all matching patterns, in no particular order."""
        found: list[ItemT] = []
        put_into(found, self._exact.get(tag, Nothing.HELD))
        self._prefixes.match(tag, found)
        return found

    def __len__(self) -> int:
        return self._size

    def _remove_exact(self, tag: bytes, item: ItemT) -> None:
        left = without_item(self._exact.get(tag, Nothing.HELD), item)
        if left is not Nothing.HELD:
            self._exact[tag] = left
            return
        del self._exact[tag]
        # A dict never releases memory. Rebuilding it at a quarter costs O(1) on average.
        if self._peak > self.SMALL and len(self._exact) * 4 < self._peak:
            self._exact = dict(self._exact)
            self._peak = len(self._exact)
