"""A memory with an end: what was not used for longest is forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView
from typing import Generic, TypeVar

Value = TypeVar("Value")
MAX_MARKED = 1000


class LruMap(Generic[Value]):
    """At most `size` values by key. Keys are short: ids and digests, never payloads."""

    __slots__ = ("_size", "_values")

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[bytes, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> Value | None:
        """The value of `key`, which is used by that; None if there is none, or none any more."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: bytes, value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def items(self) -> ItemsView[bytes, Value]:
        """Those used longest ago first."""
        return self._values.items()

    def pop(self, key: bytes) -> Value | None:
        return self._values.pop(key, None)


class ExpiringSet:
    """Names that are marked for `for_s` seconds each, at most MAX_MARKED: whose mark is the oldest loses it then."""

    __slots__ = ("_for_s", "_until")

    def __init__(self, for_s: float) -> None:
        self._for_s = for_s
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def mark(self, name: bytes, now: float) -> None:
        self._until[name] = now + self._for_s
        self._until.move_to_end(name)
        if len(self._until) > MAX_MARKED:
            self._until.popitem(last=False)

    def has(self, name: bytes, now: float) -> bool:
        return now < self._until.get(name, now)

    def clear(self) -> None:
        self._until.clear()
