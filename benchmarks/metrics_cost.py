"""What metrics of each queue cost an edge: python -m benchmarks.metrics_cost [--rounds N] [--results FOLDER]

Edges, each on a store of its own, are loaded by turns with the same work: without metrics of queues (two of them: what
differs there means nothing), with them, and with histograms, too. Printed are medians over all rounds: messages a
second, processor time of the edge's process for each message, and for one scrape in which all queues have something
new. A scrape is every 15 to 30 s. What each round found is kept in `metrics-cost.json`.
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
    "off, again": (),  # how much of a difference means nothing
    "on": ("metrics.queues=on",),
    "on, latencies": ("metrics.queues=on", "metrics.queue_latencies=on"),
}
ROUND_S = 0.5  # short, and many of them: whatever else the machine does meets all
SCRAPES = 2

FOLDER = "/var/tmp"  # on a disk, where stores are


class Measured(NamedTuple):
    """One round of one edge; processor time is that of its process."""

    messages_per_s: float
    us_per_message: float
    ms_per_scrape: float


def by_turns(modes: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[Measured]]:
    """Edges with these settings, side by side, which are loaded one after the other; the first round warms up.

    Each round begins with the next of them, so that none is always the one behind the same other.
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
    """With something new of each queue."""
    edge.once()
    return edge.scrape() * 1000


def report(found: dict[str, list[Measured]]) -> None:
    """Medians, and those of the rounds' ratios to the first mode."""
    first = next(iter(found.values()))
    for mode, measured in found.items():
        rate, each, scrape = (statistics.median(one) for one in zip(*measured, strict=True))
        against = statistics.median(mine[1] / off[1] - 1 for mine, off in zip(measured, first, strict=True))
        print(
            f"{mode:24} {rate:9,.0f} messages/s  {each:6.2f} us/message ({against:+6.1%})  {scrape:5.1f} ms/scrape"
        )


def keep(name: str, found: dict[str, list[Measured]], folder: Path) -> Path:
    """Every round's figures, in their order, with the machine that they are of."""
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


def parse(argv: Sequence[str] | None, told: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=told)
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
