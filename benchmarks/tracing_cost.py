"""What traces cost an edge: python -m benchmarks.tracing_cost [ROUNDS]

TMQ edges, each on a store of its own, are loaded by turns with the same work, as `metrics_cost` does: without traces,
with 1 % of all messages and with all of them, up to what `tracing.most_per_s` lets through; and, for a fair look at it,
with no such bound. OpenTelemetry's collector takes them, in a process of its own; `away`: nobody listens there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.metrics_cost import by_turns, report
from tests.servers import free_port
from tests.tracing.collector import Collector

UNBOUND = "tracing.most_per_s=100000"


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        collector = Collector(Path(folder) / "collector").start()
        try:
            on, away = (
                f"tracing.endpoint={collector.endpoint}",
                f"tracing.endpoint=http://127.0.0.1:{free_port()}",
            )
            modes: dict[str, tuple[str, ...]] = {
                "off": (),
                "off, again": (),  # how much of a difference means nothing
                "on, ratio 0": (on, "tracing.ratio=0"),
                "on, 1 %": (on, "tracing.ratio=0.01"),
                "on, 100 %": (on, "tracing.ratio=1"),
                "on, 100 %, away": (away, "tracing.ratio=1"),
                "on, 1 %, without a bound": (on, "tracing.ratio=0.01", UNBOUND),
            }
            report(by_turns(modes, rounds))
        finally:
            collector.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
