"""What metrics of each queue cost an edge: python -m benchmarks.metrics_cost [ROUNDS]

Edges, each on a store of its own, are loaded by turns with the same work: without metrics of queues (two of them: what
differs there means nothing), with them, and with histograms, too. Printed are medians over all rounds: messages a
second, processor time of the edge's process for each message, and for one scrape in which all queues have something
new. A scrape is every 15 to 30 s.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.loaded_edge import Edge

MODES: dict[str, tuple[str, ...]] = {
    "off": (),
    "off, again": (),  # how much of a difference means nothing
    "on": ("metrics.queues=on",),
    "on, latencies": ("metrics.queues=on", "metrics.queue_latencies=on"),
}
ROUND_S = 0.5  # short, and many of them: whatever else the machine does meets all
SCRAPES = 2

Measured = tuple[float, float, float]  # messages a second, us of processor time a message, ms of it a scrape


def by_turns(modes: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[Measured]]:
    """Edges with these settings, side by side, which are loaded one after the other; the first round warms up.

    Each round begins with the next of them, so that none is always the one behind the same other.
    """
    found: dict[str, list[Measured]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ExitStack() as stack:
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
                    found[mode].append((*measured, scrape_ms))
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


if __name__ == "__main__":
    report(by_turns(MODES, int(sys.argv[1]) if len(sys.argv) > 1 else 40))
