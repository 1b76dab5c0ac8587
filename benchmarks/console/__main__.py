"""python -m benchmarks.console: response times of the API and the page, and the cost of the live view.

Fills a store of its own with a thousand queues and a million dead letters of one of them, starts a console on it, asks
each route many times, one request after the other and four at a time, and some after a pause, searches all dead letters
with a filter that matches none, and watches all queues while each of them changes every two seconds. Then it measures
the page, in Chromium, on another store with a thousand queues; and the throughput that an edge loses to monitoring.
--docs writes the last full run's tables to docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.console import beside, cold, routes, walk, watching
from benchmarks.console.bench import Bench, start
from benchmarks.console.shown import SHOWN
from benchmarks.console.store import fill, url
from benchmarks.kept import Kept, result_name, write_docs
from benchmarks.machine import current_commit, describe
from benchmarks.peers.redis import Store
from benchmarks.process import workshop
from benchmarks.results import RESULTS

NAME = "console"
QUEUES, DEAD = 1000, 1_000_000
ASKED = 500  # requests of each kind
WATCHED_S = 30.0
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks.md"
FULL = {"queues": QUEUES, "dead": DEAD, "asked": ASKED, "seconds": WATCHED_S}
Measure = Callable[[Bench], Awaitable[Any]]


async def look_at_page(_: Bench) -> dict[str, Any]:
    """Measure the page, on a store of its own with edges."""
    from benchmarks.console.page import measure  # needs packages that only tests need

    return await measure()


async def look_at_edges(bench: Bench) -> dict[str, Any]:
    """Measure monitored edges, on stores of their own."""
    bench.say(f"{beside.ROUNDS} rounds of {beside.ROUND_S:g} s each")
    return await beside.measure()


# By name on the command line: the name in the results, and the function.
PARTS: dict[str, tuple[str, Measure]] = {
    "routes": ("routes", routes.measure),
    "cold": ("cold", cold.measure),
    "walk": ("walk", walk.measure),
    "watch": ("watched", watching.measure),
    "page": ("page", look_at_page),
    "beside": ("beside", look_at_edges),
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--dead", type=int, default=DEAD, help="dead letters of one of them")
    parser.add_argument("--asked", type=int, default=ASKED, help="questions of each kind")
    parser.add_argument("--seconds", type=float, default=WATCHED_S, help="how long the live view is watched")
    parser.add_argument("--only", action="append", default=[], choices=[*PARTS], help="may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--docs", nargs="?", type=Path, const=RESULTS / f"{NAME}.json", metavar="FILE")
    return parser.parse_args(argv)


async def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Run the parts and return the results, which are saved after each part."""
    smaller = [
        f"{getattr(options, name)}-{name}" for name, full in FULL.items() if getattr(options, name) != full
    ]
    kept = Kept(options.results, result_name(NAME, smaller, options.only))
    with workshop() as place:
        found: dict[str, Any] = {
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "is_full": not smaller and not options.only,
            "asked": options.asked,
            "machine": asdict(describe(place.folder)),
            "commit": current_commit(),
            "failed": {},
        }
        store = Store(place)
        store.start()
        console.log(f"filling: {options.queues:,} queues, {options.dead:,} dead letters")
        found["fill"] = await fill(store, options.queues, options.dead)
        size = (options.queues, options.dead, options.asked, options.seconds)
        bench = Bench(store, *start(place, url(store)), *size, say=console.log)
        for part, (name, measure) in PARTS.items():
            if options.only and part not in options.only:
                continue
            console.log(part)
            try:
                found[name] = await measure(bench)
            except OSError as failure:  # the other parts still run
                found["failed"][name] = " ".join(str(failure).split())[:500]
            kept.save(found)
    console.print(f"kept: {kept.finish()}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    options, console = parse(argv), Console()
    if options.docs:
        console.print(write_docs(DOCS, options.docs, NAME, SHOWN.markdown))
        return 0
    found = asyncio.run(run(options, console))
    SHOWN.show(found, console)
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
