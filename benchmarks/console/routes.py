"""Time each route: one request after the other, and four at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp

from benchmarks.console.bench import Bench
from benchmarks.console.busy import busy
from benchmarks.console.store import FULL, names
from tests.console.local import HEADERS

FIRST = 5  # warm-up requests of each kind, not counted: they start the live view
SIDE_BY_SIDE = 4
LOWEST_PAGES = 3  # pages of a thousand before the position where the list of dead letters is requested
FILTERS = {
    "of a reason": "reason=expired",
    "of a reason that none has": "reason=nothing",
    "of an origin": "origin=10.0.0.7",
    "older than an hour": "olderThan=1h",
    "by a pattern": "body=packing.*carrier",
    "by a pattern that none fits": "body=nowhere",
}
MESSAGE = {"body": "x" * 100}


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of request. paths: used in turn; body: of a POST."""

    paths: Sequence[str]
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Response times of one kind of request, ms."""

    p50: float
    p99: float
    most: float
    octets: int  # of a response


async def questions(bench: Bench, session: aiohttp.ClientSession) -> dict[str, Question]:
    """Return the requests by name."""
    every = [f"/queues/{name}" for name in names(bench.queues)]
    dead = f"/queues/{FULL}/dead"
    deep, letter = await _deep(bench, session, dead)
    plain = {name: [f"/{name}"] for name in ("me", "overview", "history", "reservations", "jobs", "edges")}
    beside = {
        name: [f"/{name}"] for name in ("peers", "connections", "subscriptions", "ring", "audit", "config")
    }
    paths = {
        **plain,
        **beside,
        "100 queues": ["/queues"],
        "1,000 queues": ["/queues?limit=1000"],
        "a queue": every,
        "a queue's history": [f"{path}/history" for path in every],
        "a queue's messages": [f"{path}/messages" for path in every],
        "100 dead letters": [dead, f"{dead}?cursor={deep}"],
        **{f"dead letters {name}": [f"{dead}?{query}"] for name, query in FILTERS.items()},
        "a dead letter": [f"{dead}/{letter}"],
        "its body": [f"{dead}/{letter}/body"],
    }
    puts = Question([f"{path}/messages" for path in every], MESSAGE)
    return {name: Question(each) for name, each in paths.items()} | {"a message put in": puts}


async def _deep(bench: Bench, session: aiohttp.ClientSession, dead: str) -> tuple[str, str]:
    """Return a cursor some pages into the list, and a letter there."""
    cursor, page = "", {}
    for _ in range(LOWEST_PAGES):
        async with session.get(f"{bench.base}{dead}?limit=1000&octets=0&cursor={cursor}") as response:
            page = await response.json()
        cursor = page["next"] or cursor
    return cursor, page["items"][-1]["id"]


async def ask(
    bench: Bench, session: aiohttp.ClientSession, question: Question, number: int, beside: int
) -> Times:
    """Time the requests, `beside` at a time. Raises OSError for an error response."""
    took: list[float] = []
    octets = 0
    left = iter([question.paths[each % len(question.paths)] for each in range(number)])

    async def one_after_the_other() -> None:
        nonlocal octets
        for path in left:
            method = "GET" if question.body is None else "POST"
            began = time.perf_counter()
            async with session.request(method, bench.base + path, json=question.body) as response:
                body = await response.read()
            took.append((time.perf_counter() - began) * 1000)
            if not response.ok:
                raise OSError(f"{method} {path}: {response.status} {body[:200]!r}")
            octets = len(body)

    await asyncio.gather(*(one_after_the_other() for _ in range(beside)))
    took.sort()
    return Times(took[len(took) // 2], took[len(took) * 99 // 100], took[-1], octets)


async def measure(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with aiohttp.ClientSession(headers=HEADERS) as session, busy(bench, session):
        for kind, question in (await questions(bench, session)).items():
            bench.say(kind)
            await ask(bench, session, question, FIRST, 1)
            alone = await ask(bench, session, question, bench.asked, 1)
            beside = await ask(bench, session, question, bench.asked, SIDE_BY_SIDE)
            found[kind] = {"one": asdict(alone), "four": asdict(beside)}
    return found
