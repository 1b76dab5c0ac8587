"""Memories of limited size that forget their oldest entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView
from typing import Generic, TypeVar

Value = TypeVar("Value")
MAX_MARKED = 1000


class LruMap(Generic[Value]):
    """At most `size` values by key, without the least recently used. Keys are ids and digests, never payloads."""

    __slots__ = ("_size", "_values")

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[bytes, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> Value | None:
        """Return the value of `key` and count that as a use; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: bytes, value: Value) -> None:
        """Set the value of `key`."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def items(self) -> ItemsView[bytes, Value]:
        """Return all items, the least recently used first."""
        return self._values.items()

    def pop(self, key: bytes) -> Value | None:
        """Remove a key and return its value; None if there is none."""
        return self._values.pop(key, None)


class ExpiringSet:
    """Names that are members for `for_s` seconds each; at most MAX_MARKED, without the oldest."""

    __slots__ = ("_for_s", "_until")

    def __init__(self, for_s: float) -> None:
        self._for_s = for_s
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def mark(self, name: bytes, now: float) -> None:
        """Add a name, or renew it."""
        self._until[name] = now + self._for_s
        self._until.move_to_end(name)
        if len(self._until) > MAX_MARKED:
            self._until.popitem(last=False)

    def has(self, name: bytes, now: float) -> bool:
        """Return whether the name is a member now."""
        return now < self._until.get(name, now)

    def clear(self) -> None:
        """Remove all names."""
        self._until.clear()
