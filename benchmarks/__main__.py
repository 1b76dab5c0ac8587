"""python -m benchmarks: measure, print the table, keep JSON and PNG; --page writes the last full table to its page."""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.status import Status

from benchmarks import chart, report
from benchmarks.generator import Generator
from benchmarks.machine import current_commit, describe
from benchmarks.measures import MEASURES
from benchmarks.measures.bench import Bench
from benchmarks.peers import make_peers
from benchmarks.peers.redis import Store
from benchmarks.plan import FULL, MAX_ROUNDS, MIN_ROUNDS, QUICK, Plan
from benchmarks.process import Workshop, workshop
from benchmarks.results import RESULTS, Finding, Results, load, newest_full, save

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PEERS = tuple(make_peers(Workshop(Path()), Store(Workshop(Path()), "none")))


def rounds(text: str) -> int:
    number = int(text)
    if not MIN_ROUNDS <= number <= MAX_ROUNDS:
        raise argparse.ArgumentTypeError(f"must be {MIN_ROUNDS} to {MAX_ROUNDS}")
    return number


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds, smaller counts; shows that all runs"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        choices=[*MEASURES, *PEERS],
        help=f"only this measure ({', '.join(MEASURES)}) or peer ({', '.join(PEERS)}); may be repeated",
    )
    parser.add_argument("--rounds", type=rounds, metavar="N", help="rounds of each measure")
    parser.add_argument("--folder", type=Path, help="where the servers keep their data (default: /var/tmp)")
    parser.add_argument(
        "--store-server", metavar="PATH", help="redis-server or valkey-server (default: the embedded)"
    )
    parser.add_argument(
        "--store-beside", type=Path, metavar="FILE", help="a second store side for the store measure"
    )
    parser.add_argument(
        "--python-generator", action="store_true", help="use the generator that needs no compiler"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="where results are kept (default: %(default)s)"
    )
    parser.add_argument(
        "--page", action="store_true", help="measure nothing: write the last full table to docs/benchmarks.md"
    )
    return parser.parse_args(argv)


def raise_file_limit() -> None:
    """Raise the limit for thousands of idle connections, here and in the servers, which inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(options: argparse.Namespace, console: Console) -> Results:
    plan = (QUICK if options.quick else FULL).with_rounds(options.rounds)
    with workshop(options.folder) as place, console.status("preparing") as status:
        bench = _prepare(options, plan, place, status)
        for name in measures(options.only):
            bench.results.findings += _measured(name, bench)
        return bench.results


def _measured(name: str, bench: Bench) -> list[Finding]:
    """Run one measure; a failure becomes a finding, so that the other measures still run."""
    try:
        return MEASURES[name](bench)
    except OSError as failure:
        return [Finding(name, name, note=str(failure))]


def measures(only: Sequence[str]) -> list[str]:
    """Return the measures to run; if only peers are named, throughput."""
    asked = [name for name in MEASURES if name in only]
    return asked or (["throughput"] if only else list(MEASURES))


def _prepare(options: argparse.Namespace, plan: Plan, place: Workshop, status: Status) -> Bench:
    store = Store(place, options.store_server)
    asked = [name for name in PEERS if name in options.only]
    peers = {name: peer for name, peer in make_peers(place, store).items() if not asked or name in asked}
    generator = Generator.python() if options.python_generator else Generator.build(place.folder)
    results = Results(
        date=datetime.datetime.now().isoformat(timespec="seconds"),
        machine=describe(place.folder),
        generator=generator.language,
        rounds=plan.rounds,
        quick=plan.quick,
        commit=current_commit(),
    )
    return Bench(place, generator, plan, store, peers, results, options.store_beside, status.update)


def result_name(results: Results, only: Sequence[str]) -> str:
    """Return the name of the result file. A full run has the date alone, so a partial run never replaces it."""
    return "-".join([results.date[:10], *["quick"] * results.quick, *sorted(only)])


def keep(results: Results, path: Path, console: Console) -> None:
    save(results, path)
    kept = [path.name]
    if chart.draw(results, path.with_suffix(".png")):
        kept.append(path.with_suffix(".png").name)
    console.print(f"kept in {path.parent}: {', '.join(kept)}")


def write_page(page: Path, folder: Path) -> str:
    """Write the last full run between the page's markers. Raises ValueError with what is missing."""
    path = newest_full(folder)
    if path is None:
        raise ValueError(f"no full run in {folder} yet: python -m benchmarks")
    picture = path.with_suffix(".png")
    shown = os.path.relpath(picture, page.parent) if picture.exists() else None
    report.write_between_markers(page, report.markdown(load(path), shown))
    return f"{page.name} shows {path.name}"


def main(argv: Sequence[str] | None = None) -> int:
    options, console = parse(argv), Console()
    if options.page:
        try:
            console.print(write_page(PAGE, options.results))
        except ValueError as missing:
            console.print(str(missing), style="red")
            return 2
        return 0
    raise_file_limit()
    results = run(options, console)
    report.print_results(results, console)
    keep(results, options.results / f"{result_name(results, options.only)}.json", console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
