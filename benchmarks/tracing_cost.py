"""Measure the cost of traces for an edge: python -m benchmarks.tracing_cost [--rounds N] [--results FOLDER]

TMQ edges, each on a store of its own, are loaded by turns with the same work, as `metrics_cost` does: without traces,
with 1 % of all messages and with all of them, up to the limit `tracing.most_per_s`; and, for comparison, without that
limit. OpenTelemetry's collector receives them, in a process of its own; `away`: no collector listens. First it prints
the cost of checking a message with attributes for a trace context: a traced edge has attributes on each message.
"""

from __future__ import annotations

import tempfile
import timeit
from pathlib import Path

from benchmarks.metrics_cost import by_turns, keep, parse, report
from services.store.model import records, trace_context
from tests.servers import free_port
from tests.tracing.collector import Collector

UNBOUND = "tracing.most_per_s=100000"


READS = 100_000


def read_us(attributes: dict[str, str]) -> float:
    """Return the us of the check for one message of 100 octets; the best of five."""
    record = records.encode(b"x" * 100, attributes)
    seconds = timeit.repeat(lambda: trace_context.of_record(record), number=READS, repeat=5)
    return min(seconds) / READS * 1e6


def main() -> None:
    options = parse(None, __doc__)
    context = {trace_context.KEY: trace_context.fresh().header}
    for label, attributes in (("no context", {}), ("a context", context)):
        print(f"reading attributes with {label}: {read_us({'tag': 'order.new', **attributes}):.2f} us")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        collector = Collector(Path(folder) / "collector").start()
        try:
            on, away = (
                f"tracing.endpoint={collector.endpoint}",
                f"tracing.endpoint=http://127.0.0.1:{free_port()}",
            )
            modes: dict[str, tuple[str, ...]] = {
                "off": (),
                "off, again": (),  # shows the noise
                "on, ratio 0": (on, "tracing.ratio=0"),
                "on, 1 %": (on, "tracing.ratio=0.01"),
                "on, 100 %": (on, "tracing.ratio=1"),
                "on, 100 %, away": (away, "tracing.ratio=1"),
                "on, 1 %, without a bound": (on, "tracing.ratio=0.01", UNBOUND),
            }
            found = by_turns(modes, options.rounds)
            report(found)
            print(f"kept: {keep('tracing-cost', found, options.results)}")
        finally:
            collector.stop()


if __name__ == "__main__":
    main()
