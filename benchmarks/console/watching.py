"""Measure the live view's cost for the console: with changes of all queues in each poll, and without changes."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp

from benchmarks.console.bench import Bench
from benchmarks.console.store import Traffic
from benchmarks.machine import cpu_s, resident_kib
from tests.console.local import HEADERS

SETTLED_S = 5.0  # after the first poll, which is sent in full
LONGEST_LINE = 1 << 22  # octets: an event with all queues fits


@dataclass(frozen=True, slots=True)
class Watched:
    """The cost of the live view. share: the part of a core that the console used."""

    share: float
    octets_per_s: float
    rows_per_s: float
    resident_mib: float


async def watch(session: aiohttp.ClientSession, bench: Bench) -> Watched:
    pid = bench.console.pid
    octets = rows = 0
    async with session.get(f"{bench.base}/events") as response:
        end = time.monotonic() + SETTLED_S
        before, began, is_counted = cpu_s(pid), time.monotonic(), False
        async for line in response.content:
            now = time.monotonic()
            if not is_counted and now > end:
                before, began, is_counted, end = cpu_s(pid), now, True, now + bench.seconds
            elif now > end:
                break
            if is_counted:
                octets += len(line)
                rows += line.count(b'"oldestAgeMs"')
        took = time.monotonic() - began
        share = (cpu_s(pid) - before) / took
    return Watched(share, octets / took, rows / took, resident_kib(pid) / 1024)


async def measure(bench: Bench) -> dict[str, Any]:
    async with aiohttp.ClientSession(headers=HEADERS, read_bufsize=LONGEST_LINE) as session:
        async with Traffic(bench.store, bench.queues):
            bench.say("watching queues that all change")
            busy = await watch(session, bench)
        bench.say("watching queues that do not")
        still = await watch(session, bench)
    return {"all of them change": asdict(busy), "none does": asdict(still)}
