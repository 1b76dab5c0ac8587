"""Search all dead letters with a filter that matches none, and measure the effect on other clients of the store."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import aiohttp

from benchmarks.console.bench import Bench
from benchmarks.console.store import FULL
from benchmarks.peers.redis import Store
from tests.console.local import HEADERS

QUERY = f"/queues/{FULL}/dead?reason=nothing&limit=1000"
ALONE_S = 2.0  # how long pings are measured without the search
EVERY_S = 0.002


class Pings:
    """Another client of the store: within `with`, a thread sends a PING every two milliseconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over = threading.Event()
        self._took: list[float] = []  # ms
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Pings:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        with self._store.connect() as connection:
            while not self._over.wait(EVERY_S):
                began = time.perf_counter()
                connection.ping()
                self._took.append((time.perf_counter() - began) * 1000)

    def percentiles(self) -> dict[str, float]:
        return percentiles(self._took)


def percentiles(took: list[float]) -> dict[str, float]:
    took = sorted(took)
    return {"p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100], "most": took[-1]}


async def measure(bench: Bench) -> dict[str, Any]:
    with Pings(bench.store) as alone:
        await asyncio.sleep(ALONE_S)
    took: list[float] = []  # ms, of each page
    cursor: str | None = ""
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        with Pings(bench.store) as beside:
            began = time.perf_counter()
            while cursor is not None:
                asked = time.perf_counter()
                async with session.get(f"{bench.base}{QUERY}&cursor={cursor}") as response:
                    page = await response.json()
                took.append((time.perf_counter() - asked) * 1000)
                if page["items"]:
                    raise OSError(f"{QUERY} found {page['items'][0]}")
                cursor = page["next"]
            seconds = time.perf_counter() - began
    pings = {"alone": alone.percentiles(), "beside": beside.percentiles()}
    return {
        "seconds": seconds,
        "pages": len(took),
        **{f"{name}_ms": each for name, each in percentiles(took).items()},
        "pings": pings,
    }
