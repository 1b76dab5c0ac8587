"""Query all running processes at once, and page through their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.console.contract.cursor import bad_cursor, decode_cursor, encode_cursor
from services.console.queries.paging import Paged
from services.store import Store
from services.store.processes import Answer, Answers

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProcessQuery:
    """A query of all processes."""

    kind: str  # of the cursor
    topic: str
    start: str  # argument with the place in a process's list where it continues
    place: Callable[[int, int, Item], int]  # the place after an item, from the start, its index, and the item


async def query_page(
    store: Store,
    query: ProcessQuery,
    paging: Paged,
    edge: str,
    render: Callable[[Answer, Item], dict[str, Any] | None],
    only: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a page of items, sorted by process, and in `silent` the processes that did not answer in time.

    only: arguments that filter items; older edges may ignore them, so `render` filters again by returning None.
    Raises Problem for a bad cursor.
    """
    first, start = _place(query, paging)
    answers, silent = await _query(store, query, {"limit": paging.limit, **(only or {})}, edge, first, start)
    items: list[dict[str, Any]] = []
    last = len(answers) - 1
    for at, answer in enumerate(answers):
        begin = start if answer.process == first else 0
        for index, item in enumerate(answer.items):
            if (rendered := render(answer, item)) is not None:
                items.append(rendered)
            is_end = index == len(answer.items) - 1
            more = answer.more or at < last or not is_end
            if more and (len(items) == paging.limit or (is_end and answer.more)):
                place = str(query.place(begin, index, item))
                cursor = encode_cursor(query.kind, answer.process, place)
                return {"items": items, "next": cursor, "silent": silent}
    return {"items": items, "next": None, "silent": silent}


def _place(query: ProcessQuery, paging: Paged) -> tuple[str, int]:
    if not paging.cursor:
        return "", 0
    first, place = decode_cursor(paging.cursor, query.kind, 2)
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        raise bad_cursor()
    return first, int(place)


async def _query(
    store: Store, query: ProcessQuery, args: Mapping[str, Any], edge: str, first: str, start: int
) -> tuple[list[Answer], list[str]]:
    """Return the answers from process `first` on, and the silent processes."""
    found: list[Answers] = []
    if first:
        begin = {query.start: start, **args}
        found.append(await store.processes.inquire(query.topic, begin, edge=edge, process=first))
    if not any(
        answer.more or len(answer.items) >= args["limit"] for part in found for answer in part.answers
    ):
        found.append(await store.processes.inquire(query.topic, args, edge=edge))
    answers = [
        answer
        for number, part in enumerate(found)
        for answer in part.answers
        if answer.process > first or (first and number == 0)
    ]
    silent = {process.name for part in found for process in part.silent}
    return sorted(answers, key=lambda answer: answer.process), sorted(silent)
