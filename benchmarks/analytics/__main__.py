"""python -m benchmarks.analytics: the analytics job on a day of dead letters and samples, and its alternatives.

Fills a store of its own, reads it with Spark and with a plain loop, runs the whole job on one core and on two, computes
the table of deaths as the job, Spark SQL, DuckDB and pandas do, and measures an edge while the job runs. --docs writes
the last full run's tables to docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.analytics import asking, beside, profile, reading
from benchmarks.analytics.bench import Bench, fill, keep_some
from benchmarks.analytics.findings import ONE, TWO
from benchmarks.analytics.shown import SHOWN
from benchmarks.generator import Generator
from benchmarks.kept import Kept, result_name, write_docs
from benchmarks.machine import current_commit, describe
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import Tmq
from benchmarks.process import workshop
from benchmarks.results import RESULTS

NAME = "analytics"
RECORDS = 5_000_000  # dead letters, and as many samples
HOURS = 24
EDGE_RECORDS = 1_000_000  # of each kind, at most, in the runs beside an edge
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks.md"
FULL = beside.Looks()
Measure = Callable[[Bench], Any]

ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,  # workers use the interpreter of this process
    "PENSTOCK_EDGES__TMQ__STORE__SAMPLES_KEPT": str(
        100_000_000
    ),  # the edge must not trim the benchmark's samples
}


def run_jobs(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """Run the job by master. Raises OSError if a run has not read exactly the records of the store."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(bench.rounds):
        for master in (ONE, TWO)[:: 1 if number % 2 else -1]:
            bench.say(f"the job, {master}")
            job = bench.job(master)
            ended = job.begin().end()
            if (ended.dead, ended.samples) != (bench.day.letters, bench.day.samples):
                raise OSError(f"{ended} has not read {bench.day}")
            found.setdefault(master, []).append(asdict(ended))
            bench.output = job.output
    return found


def look_at_edge(bench: Bench, looks: beside.Looks) -> dict[str, Any]:
    keep_some(bench, min(bench.day.samples, EDGE_RECORDS))
    return beside.measure(bench, looks)


def parts(looks: beside.Looks) -> dict[str, tuple[str, Measure]]:
    """Return the parts by their names on the command line: the name in the results, and the function."""
    return {
        "read": ("reading", reading.measure),
        "profile": ("profile", profile.measure),
        "job": ("job", run_jobs),
        "ask": ("asked", asking.measure),
        "edge": ("edge", lambda bench: look_at_edge(bench, looks)),
    }


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="dead letters, and as many samples")
    parser.add_argument("--hours", type=int, default=HOURS, help="that they are of (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], choices=[*parts(FULL)], help="may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--docs", nargs="?", type=Path, const=RESULTS / "analytics.json", metavar="FILE")
    return parser.parse_args(argv)


def run(options: argparse.Namespace, console: Console, looks: beside.Looks = FULL) -> dict[str, Any]:
    """Run the parts and return the results, which are saved after each part."""
    kept = Kept(options.results, result_name(NAME, smaller(options), options.only))
    with workshop() as place, environment(ENVIRONMENT):
        found = _head(options, place.folder)
        store = Store(place)
        edge, generator = Tmq(place, store), Generator.build(place.folder)
        bench = Bench(place, store, edge, generator, console.log, options.rounds)
        bench.say("filling the store")
        found["fill"] = fill(bench, options.records, options.hours)
        for part in _wanted(options.only):
            name, measure = parts(looks)[part]
            try:
                found[name] = measure(bench)
            except OSError as failure:  # the other parts still run
                found["failed"][name] = " ".join(str(failure).split())[:500]
            kept.save(found)
    console.print(f"kept: {kept.finish()}")
    return found


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started in the `with` block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def smaller(options: argparse.Namespace) -> list[str]:
    """Return the names of the options that differ from a full run."""
    records = [str(options.records)] if options.records != RECORDS else []
    return records + ([f"{options.hours}h"] if options.hours != HOURS else [])


def _head(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "rounds": options.rounds,
        "is_full": not smaller(options) and not options.only,
        "machine": asdict(describe(folder)),
        "commit": current_commit(),
        "failed": {},
    }


def _wanted(only: Sequence[str]) -> list[str]:
    """Return the parts to run, in order. `ask` needs an archive, so it adds `job`, which writes one."""
    names = [name for name in parts(FULL) if not only or name in only]
    return ["job", *names] if "ask" in names and "job" not in names else names


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
