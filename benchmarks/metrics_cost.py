"""Measure the cost of per-queue metrics for an edge: python -m benchmarks.metrics_cost [--rounds N] [--results FOLDER]

Edges, each on a store of its own, are loaded by turns with the same work: without metrics of queues (two edges, whose
difference is noise), with them, and with histograms too. It prints medians over all rounds: messages a second,
processor time of the edge's process for each message, and for one scrape with new values of all queues. Scrapes usually
occur every 15 to 30 s. The figures of each round are saved in `metrics-cost.json`.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.kept import Kept
from benchmarks.loaded_edge import Edge
from benchmarks.machine import current_commit, describe
from benchmarks.results import RESULTS

MODES: dict[str, tuple[str, ...]] = {
    "off": (),
    "off, again": (),  # shows the noise
    "on": ("metrics.queues=on",),
    "on, latencies": ("metrics.queues=on", "metrics.queue_latencies=on"),
}
ROUND_S = 0.5  # many short rounds, so that other load on the machine affects all edges
SCRAPES = 2

FOLDER = "/var/tmp"  # on a disk, as stores usually are


class Measured(NamedTuple):
    """One round of one edge; processor time is that of its process."""

    messages_per_s: float
    us_per_message: float
    ms_per_scrape: float


def by_turns(modes: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[Measured]]:
    """Run edges with these settings and load them one after the other; the first round warms up.

    Each round begins with the next edge, so that the order does not favour one of them.
    """
    found: dict[str, list[Measured]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, ExitStack() as stack:
        edges = {
            mode: stack.enter_context(Edge(Path(folder) / str(number), settings).running())
            for number, (mode, settings) in enumerate(modes.items())
        }
        for number in range(rounds + 1):
            turn = number % len(edges)
            for mode in [*edges][turn:] + [*edges][:turn]:
                measured = edges[mode].load(ROUND_S)
                scrape_ms = statistics.mean(map(scraped_ms, [edges[mode]] * SCRAPES))
                if number:
                    found[mode].append(Measured(*measured, scrape_ms))
    return found


def scraped_ms(edge: Edge) -> float:
    """Return the ms of a scrape with new values of each queue."""
    edge.once()
    return edge.scrape() * 1000


def report(found: dict[str, list[Measured]]) -> None:
    """Print medians, and medians of the rounds' ratios to the first mode."""
    first = next(iter(found.values()))
    for mode, measured in found.items():
        rate, each, scrape = (statistics.median(one) for one in zip(*measured, strict=True))
        against = statistics.median(mine[1] / off[1] - 1 for mine, off in zip(measured, first, strict=True))
        print(
            f"{mode:24} {rate:9,.0f} messages/s  {each:6.2f} us/message ({against:+6.1%})  {scrape:5.1f} ms/scrape"
        )


def keep(name: str, found: dict[str, list[Measured]], folder: Path) -> Path:
    """Save every round's figures, in order, with a description of the machine."""
    kept = Kept(folder, name)
    kept.save(
        {
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "machine": asdict(describe(Path(FOLDER))),
            "commit": current_commit(),
            "rounds": {mode: [each._asdict() for each in measured] for mode, measured in found.items()},
        }
    )
    return kept.finish()


def parse(argv: Sequence[str] | None, description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv, __doc__)
    found = by_turns(MODES, options.rounds)
    report(found)
    print(f"kept: {keep('metrics-cost', found, options.results)}")


if __name__ == "__main__":
    main()
