"""python -m benchmarks.analytics: the analytics job on a day of dead letters and samples.

Fills a store of its own, reads it with Spark and with a plain loop, runs the whole job on two cores and on one, then
with few new records, and computes gold tables as the job, DuckDB and Polars do. --docs writes the last full run's
tables to docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.analytics import gold, reading, runs
from benchmarks.analytics.bench import Bench, fill
from benchmarks.analytics.shown import SHOWN
from benchmarks.kept import Kept, result_name, write_docs
from benchmarks.machine import current_commit, describe
from benchmarks.peers.redis import Store
from benchmarks.process import workshop
from benchmarks.results import RESULTS

NAME = "analytics"
RECORDS = 5_000_000  # dead letters, and as many samples
HOURS = 24
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks.md"
DAYS = "ten_days"
PARTS: dict[str, Callable[[Bench], Any]] = {  # in order: `job` adds letters, and `ten_days` removes all
    "reading": reading.measure,
    "cores": runs.measure_cores,
    "job": runs.measure_job,
    "gold": gold.measure,
    DAYS: runs.measure_days,
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="dead letters, and as many samples")
    parser.add_argument("--hours", type=int, default=HOURS, help="that they are of (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], choices=[*PARTS], help="may be repeated")
    parser.add_argument("--ten-days", action="store_true", help="add this part, which takes half an hour")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--docs", nargs="?", type=Path, const=RESULTS / "analytics.json", metavar="FILE")
    return parser.parse_args(argv)


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Run the parts and return the results, which are saved after each part."""
    kept = Kept(options.results, result_name(NAME, smaller(options), options.only))
    with workshop() as place:
        found = _head(options, place.folder)
        bench = Bench(place, Store(place), console.log, options.records, options.hours)
        bench.say("filling the store")
        found["fill"] = fill(bench)
        for name in wanted(options):
            try:
                found[name] = PARTS[name](bench)
            except OSError as failure:  # the other parts still run
                found["failed"][name] = " ".join(str(failure).split())[:500]
            kept.save(found)
    console.print(f"kept: {kept.finish()}")
    return found


def wanted(options: argparse.Namespace) -> list[str]:
    """Return the parts to run, in order."""
    chosen = options.only or [name for name in PARTS if name != DAYS]
    return [name for name in PARTS if name in chosen or (name == DAYS and options.ten_days)]


def smaller(options: argparse.Namespace) -> list[str]:
    """Return the names of the options that differ from a full run."""
    records = [str(options.records)] if options.records != RECORDS else []
    return records + ([f"{options.hours}h"] if options.hours != HOURS else [])


def _head(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "is_full": not smaller(options) and not options.only,
        "machine": asdict(describe(folder)),
        "commit": current_commit(),
        "failed": {},
    }


def main(argv: Sequence[str] | None = None) -> int:
    options, console = parse(argv), Console()
    if options.docs:
        console.print(write_docs(DOCS, options.docs, NAME, SHOWN.markdown))
        return 0
    found = run(options, console)
    SHOWN.show(found, console)
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
