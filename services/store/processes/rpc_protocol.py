"""The interface of a process that answers questions of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

Item = Mapping[str, Any]  # a JSON object of some hundred octets
# Returns the items that answer a question with these arguments. They are read only as far as the answer has room.
# Raises ValueError for invalid arguments.
Topic = Callable[[Mapping[str, Any]], Iterable[Item]]


@runtime_checkable
class Respondent(Protocol):
    """An observer of the store that describes its process and answers questions."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The questions that it answers, by name. Topics may be added while it runs."""

    def about(self) -> Mapping[str, Any]:
        """Return any of `listeners` [{name, address}], `health`, `unready`, `connections` (presence.py)."""
