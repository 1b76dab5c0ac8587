"""What stands around the store's user and can be asked: the kit's process, for whoever asks running processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

Item = Mapping[str, Any]  # as JSON has it, some hundred octets
# What is answered to a question with these arguments: looked at item by item, and no further than there is room. Raises
# ValueError for arguments that are none.
Topic = Callable[[Mapping[str, Any]], Iterable[Item]]


@runtime_checkable
class Respondent(Protocol):
    """As the store's observer it says what the process is, and answers for it."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name; there may come more."""

    def about(self) -> Mapping[str, Any]:
        """Any of `listeners` [{name, address}], `health`, `unready`, `connections` (presence.py)."""
