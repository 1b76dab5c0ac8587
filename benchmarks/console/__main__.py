"""python -m benchmarks.console: how soon the API answers, and what the live view costs.

Fills a store of its own with queues and dead letters, starts the console on it, asks each kind of question many times,
one after the other and several at a time, and then watches all queues while each of them changes every two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp
from rich.console import Console
from rich.table import Table

from benchmarks.console.store import FULL, Traffic, fill, names
from benchmarks.machine import cpu_s, current_commit, describe
from benchmarks.peers.redis import Store
from benchmarks.process import Daemon, Workshop, free_port, workshop
from benchmarks.results import RESULTS

QUEUES, DEAD = 1000, 1_000_000
ASKED = 500  # of each kind
SIDE_BY_SIDE = 4
WATCHED_S = 30.0
Ask = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Times:
    """Of one kind of question, ms."""

    p50: float
    p99: float
    most: float
    octets: int  # of an answer


@dataclass(frozen=True, slots=True)
class Watched:
    """share: of a core, that the console used."""

    share: float
    octets_per_s: float
    rows_per_s: float
    resident_mib: float


def start(place: Workshop, store: Store) -> tuple[Daemon, str]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "services.console",
        "--set",
        f"console.port={port}",
        "--set",
        "health.port=0",
    ]
    environment = {"PENSTOCK_STORE__URL": f"redis://127.0.0.1:{store.port}", "PYTHONPATH": str(Path.cwd())}
    base = f"http://127.0.0.1:{port}"
    daemon = place.start("console", command, lambda: urlopen(f"{base}/readyz"), environment)
    return daemon, f"{base}/api/v1"


async def questions(base: str, session: aiohttp.ClientSession, queues: int) -> dict[str, list[str]]:
    """Paths by the kind of question; they are asked in turn."""
    dead, deep = f"{base}/queues/{FULL}/dead", ""
    for _ in range(3):
        async with session.get(f"{dead}?limit=1000&octets=0&cursor={deep}") as response:
            page = await response.json()
        deep = page["next"] or deep
    letter = page["items"][-1]["id"]
    return {
        "overview": [f"{base}/overview"],
        "100 queues": [f"{base}/queues"],
        "1,000 queues": [f"{base}/queues?limit=1000"],
        "a queue": [f"{base}/queues/{name}" for name in names(queues)],
        "100 dead letters": [dead, f"{dead}?cursor={deep}"],
        "100 of a reason": [f"{dead}?reason=expired"],
        "100 by a pattern": [f"{dead}?body=k1[0-9]"],
        "a dead letter": [f"{dead}/{letter}"],
        "messages": [f"{base}/queues/{name}/messages" for name in names(queues)],
        "history": [f"{base}/queues/{name}/history" for name in names(queues)],
    }


async def asked(session: aiohttp.ClientSession, paths: list[str], number: int, side_by_side: int) -> Times:
    took: list[float] = []
    octets = 0
    left = iter([paths[each % len(paths)] for each in range(number)])

    async def one_after_the_other() -> None:
        nonlocal octets
        for path in left:
            began = time.perf_counter()
            async with session.get(path) as response:
                body = await response.read()
                assert response.status == 200, (path, body)
            took.append((time.perf_counter() - began) * 1000)
            octets = len(body)

    await asyncio.gather(*(one_after_the_other() for _ in range(side_by_side)))
    took.sort()
    return Times(took[len(took) // 2], took[len(took) * 99 // 100], took[-1], octets)


async def watched(session: aiohttp.ClientSession, base: str, pid: int, seconds: float) -> Watched:
    """After the first look: that one is told whole."""
    octets = rows = 0
    async with session.get(f"{base}/events") as response:
        end = time.monotonic() + 5.0
        before, began, is_counted = cpu_s(pid), time.monotonic(), False
        async for line in response.content:
            now = time.monotonic()
            if not is_counted and now > end:
                before, began, is_counted, end = cpu_s(pid), now, True, now + seconds
            elif now > end:
                break
            if is_counted:
                octets += len(line)
                rows += line.count(b'"oldestAgeMs"')
        took = time.monotonic() - began
        share = (cpu_s(pid) - before) / took
    return Watched(share, octets / took, rows / took, _resident_mib(pid))


def _resident_mib(pid: int) -> float:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


async def measure(place: Workshop, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    store = Store(place)
    store.start()
    console.log(f"filling: {options.queues:,} queues, {options.dead:,} dead letters")
    await fill(store, options.queues, options.dead)
    daemon, base = start(place, store)
    found: dict[str, Any] = {"queues": options.queues, "dead": options.dead, "times": {}}
    # so long a line that an event of all queues fits
    async with aiohttp.ClientSession(read_bufsize=1 << 22) as session:
        for kind, paths in (await questions(base, session, options.queues)).items():
            console.log(kind)
            await asked(session, paths, 5, 1)  # the first one wakes the live view
            alone = await asked(session, paths, options.asked, 1)
            beside = await asked(session, paths, options.asked, SIDE_BY_SIDE)
            found["times"][kind] = {"one": asdict(alone), "four": asdict(beside)}
        async with Traffic(store, options.queues):
            console.log("watching queues that all change")
            found["busy"] = asdict(await watched(session, base, daemon.pid, options.seconds))
        console.log("watching queues that do not")
        found["still"] = asdict(await watched(session, base, daemon.pid, options.seconds))
    return found


def show(found: dict[str, Any], console: Console) -> None:
    table = Table("asked for", "p50", "p99", "4 at a time: p50", "p99", "octets", title="ms")
    for kind, told in found["times"].items():
        one, four = told["one"], told["four"]
        numbers = (one["p50"], one["p99"], four["p50"], four["p99"])
        table.add_row(kind, *(f"{each:.1f}" for each in numbers), f"{one['octets']:,}")
    console.print(table)
    for name in ("busy", "still"):
        told = found[name]
        console.print(
            f"live view, {name}: {told['share']:.1%} of a core, {told['rows_per_s']:,.0f} rows/s, "
            f"{told['octets_per_s'] / 1024:,.0f} KiB/s, {told['resident_mib']:.0f} MiB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--dead", type=int, default=DEAD, help="dead letters of one of them")
    parser.add_argument("--asked", type=int, default=ASKED, help="questions of each kind")
    parser.add_argument("--seconds", type=float, default=WATCHED_S, help="how long the live view is watched")
    parser.add_argument(
        "--no-file", action="store_true", help="leave benchmarks/results/console.json as it is"
    )
    options = parser.parse_args()
    console = Console()
    with workshop() as place:
        found = asyncio.run(measure(place, options, console))
        found |= {"machine": asdict(describe(place.folder)), "commit": current_commit()}
    if not options.no_file:
        (RESULTS / "console.json").write_text(json.dumps(found, indent=1, default=str) + "\n", "utf-8")
    show(found, console)


if __name__ == "__main__":
    main()
