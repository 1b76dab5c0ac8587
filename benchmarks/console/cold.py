"""Time the first request after a pause, and the first request for samples that a new console gets."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import aiohttp

from benchmarks.console.bench import Bench, start
from benchmarks.console.busy import Samples
from benchmarks.console.store import FULL, url
from tests.console.local import HEADERS

ROUNDS = 5
SILENCE_S = 20.0  # of each console: it continues to poll for 15 s after the last request
HISTORY = f"/queues/{FULL}/history"
PATHS = {"overview": "/overview", "1,000 queues": "/queues?limit=1000", "a queue's history": HISTORY}
NEW = "a queue's history, of a new console"


async def ask(session: aiohttp.ClientSession, place: str) -> float:
    """Return the ms of one request. Raises OSError for an error response."""
    began = time.perf_counter()
    async with session.get(place) as response:
        body = await response.read()
    if not response.ok:
        raise OSError(f"{place}: {response.status} {body[:200]!r}")
    return (time.perf_counter() - began) * 1000


async def measure(bench: Bench) -> dict[str, Any]:
    """Return the median and the maximum for each kind of request."""
    place, store = bench.store.workshop, url(bench.store)
    took: dict[str, list[float]] = {name: [] for name in (*PATHS, NEW)}
    async with aiohttp.ClientSession(headers=HEADERS) as session, Samples(bench.store, bench.queues):
        consoles = {name: start(place, store, f"console {name}") for name in PATHS}
        for name, (_, base) in consoles.items():
            await ask(session, base + PATHS[name])
        for number in range(ROUNDS):
            bench.say(f"silence {number + 1} of {ROUNDS}")
            await asyncio.sleep(SILENCE_S)
            for name, (_, base) in consoles.items():
                took[name].append(await ask(session, base + PATHS[name]))
        for daemon, _ in consoles.values():
            place.stop(daemon)
        for _ in range(ROUNDS):
            daemon, base = start(place, store, "console of now")
            await ask(session, f"{base}/me")
            took[NEW].append(await ask(session, base + HISTORY))
            place.stop(daemon)
    return {name: {"p50": statistics.median(each), "most": max(each)} for name, each in took.items()}
