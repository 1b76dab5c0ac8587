"""Questions to running processes through the store: their wire format, and the interface of a process that answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

MOST_ITEMS = 1 << 20  # octets of JSON in one answer; `more` says that items were left out

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


@dataclass(frozen=True, slots=True)
class Question:
    """A published question. `until`: when the asker stops waiting, ms by the store's clock."""

    id: str
    until: int
    topic: str
    args: dict[str, Any]
    edge: str  # '': all
    process: str  # '': all

    def is_for(self, edge: str, process: str) -> bool:
        """Return whether the process of this name and edge is addressed."""
        return self.edge in ("", edge) and self.process in ("", process)

    def encode(self) -> bytes:
        """Encode the question as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, text: bytes) -> Question | None:
        """Return the question, None if it is of another version."""
        try:
            said = json.loads(text)
            words = (str(said["topic"]), dict(said["args"]), str(said["edge"]), str(said["process"]))
            return cls(str(said["id"]), int(said["until"]), *words)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Answer:
    """One process's answer."""

    process: str
    edge: str
    items: list[dict[str, Any]]
    more: bool = False  # there are more items than the limit or MOST_ITEMS allows
    problem: str = ""  # why the question was not answered; there are then no items

    @classmethod
    def parse(cls, text: bytes) -> Answer | None:
        """Return the answer, None if it is of another version."""
        try:
            said = json.loads(text)
            items, more = [dict(item) for item in said["items"]], bool(said["more"])
            return cls(str(said["process"]), str(said["edge"]), items, more, str(said["problem"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def encode_answer(process: str, edge: str, items: list[str], more: bool, problem: str) -> bytes:
    """Encode an answer as JSON. items: each as JSON."""
    head = json.dumps({"process": process, "edge": edge, "more": more, "problem": problem})
    return f'{head[:-1]}, "items": [{",".join(items)}]}}'.encode()
