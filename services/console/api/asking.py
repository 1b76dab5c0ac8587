"""Pages of what only running processes know: all are asked at once, and one within which a page ended goes on there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.console.contract.cursor import decode_cursor, encode_cursor
from services.console.contract.problems import Problem
from services.console.queries.paging import Paged
from services.store import Store
from services.store.processes import Answer, Answers

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked. `start`: the argument that says where a process goes on; `place`: that of an item, by the start,
    its index and the item."""

    kind: str  # of the cursor
    topic: str
    start: str
    place: Callable[[int, int, Item], int]


async def ask_page(
    store: Store,
    asked: Asked,
    query: Paged,
    edge: str,
    tell: Callable[[Answer, Item], dict[str, Any] | None],
    only: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """In the order of processes' names; `silent`: who did not answer in time. only: arguments that leave items out; an
    edge of before may not know one, so `tell` leaves out (None) what they would have.

    Raises Problem for a bad cursor.
    """
    first, start = _place(asked, query)
    answers, silent = await _ask(store, asked, {"limit": query.limit, **(only or {})}, edge, first, start)
    items: list[dict[str, Any]] = []
    last = len(answers) - 1
    for at, answer in enumerate(answers):
        begin = start if answer.process == first else 0
        for index, item in enumerate(answer.items):
            if (told := tell(answer, item)) is not None:
                items.append(told)
            is_end = index == len(answer.items) - 1
            more = answer.more or at < last or not is_end
            if more and (len(items) == query.limit or (is_end and answer.more)):
                place = str(asked.place(begin, index, item))
                cursor = encode_cursor(asked.kind, answer.process, place)
                return {"items": items, "next": cursor, "silent": silent}
    return {"items": items, "next": None, "silent": silent}


def _place(asked: Asked, query: Paged) -> tuple[str, int]:
    if not query.cursor:
        return "", 0
    first, place = decode_cursor(query.cursor, asked.kind, 2)
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        raise Problem(400, "bad_cursor", "this is no cursor of this list")
    return first, int(place)


async def _ask(
    store: Store, asked: Asked, args: Mapping[str, Any], edge: str, first: str, start: int
) -> tuple[list[Answer], list[str]]:
    """Answers from `first` on, and who is silent."""
    found: list[Answers] = []
    if first:
        begin = {asked.start: start, **args}
        found.append(await store.processes.inquire(asked.topic, begin, edge=edge, process=first))
    if not any(
        answer.more or len(answer.items) >= args["limit"] for part in found for answer in part.answers
    ):
        found.append(await store.processes.inquire(asked.topic, args, edge=edge))
    answers = [
        answer
        for number, part in enumerate(found)
        for answer in part.answers
        if answer.process > first or (first and number == 0)
    ]
    silent = {process.name for part in found for process in part.silent}
    return sorted(answers, key=lambda answer: answer.process), sorted(silent)
