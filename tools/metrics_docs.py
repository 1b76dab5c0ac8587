"""docs/metrics.md, written from the code: python -m tools.metrics_docs > docs/metrics.md

Metrics are constants of modules named `measures` or `..._measures`, which are found by looking.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from services.kit.measure import Kind, Measure

PACKAGES = ("services", "penstock_operator")
OF_EDGES = "services"  # whose metrics have the label `edge`
WITHOUT_EDGE = ("services.kit.runtime_measures", "services.kit.state_measures")

INTRODUCTION = """\
# Metrics

Made of the code by `make metrics-docs`; a test scrapes every process and sees that it tells nothing else.

`/metrics` on the health port of each process is what Prometheus reads: `penstock serve`, each edge of `penstock up`, the
[System V bridge](sysv.md), the [operator](kubernetes.md). On Kubernetes the [chart](chart.md) brings a PodMonitor or a
ServiceMonitor, [alerts](runbooks) and dashboards. Names are those of Prometheus' conventions: base units (seconds,
bytes) at the end, `_total` behind what only rises. Of what the edges tell, the first label is always `edge`; a process of
an edge that has several workers tells of all of them together.

## How many series there are
Every series costs Prometheus memory, so none of them is named after what clients bring: no address, no connection, no
message. **Queues** have names in metrics only where somebody said so:

| setting | | |
|---|---|---|
| `metrics.queues: off` | edges | the default: nothing of single queues, and nothing is computed |
| `metrics.queues: on` | edges | what each process does with each queue: `penstock_queue_in_messages_total` and the like, 7 series a queue, and one more for each reason of a refusal |
| `metrics.queue_latencies: on` | edges | histograms, too: 37 series more a queue |
| `metrics.max_queues: 200` | edges | so many queues have a name, the first that the process hears of (all workers together); the rest is summed up as `queue="_other"` |
| `PENSTOCK_OPERATOR_QUEUE_METRICS`, `_MAX_QUEUES` | operator | the same for how queues stand: `penstock_queue_ready_messages` and the like, 6 series a queue; those that hold most have names first. Off, all queues together are `_other` |

The chart's `monitoring.queues` sets them all. How queues stand is the same whoever looks, so one process tells it, for all
queues of the store: the operator. `max by (queue) (...)` is right for one who tells it and for two; the dashboards ask so. A
queue has the same name everywhere, as names are unique in a store. Octets of a
name that are no UTF-8 become replacement characters.

Dead letters are seen without any names: `penstock_queue_dead_messages` is told of all queues together, too.

## All of them
**Series** is how many there may be of one process.
"""


@dataclass(frozen=True, slots=True)
class Row:
    measure: Measure
    who: str
    labels: tuple[str, ...]


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            last = found.name.rpartition(".")[2]
            if last == "measures" or last.endswith("_measures"):
                yield importlib.import_module(found.name)


def rows() -> list[Row]:
    """Of all metrics that there are, by name."""
    found = [
        Row(one, module.WHO, (*_edge(module.__name__), *one.label_names))
        for module in modules()
        for one in vars(module).values()
        if isinstance(one, Measure)
    ]
    return sorted(found, key=lambda row: row.measure.name)


def _edge(module: str) -> tuple[str, ...]:
    return ("edge",) if module.startswith(OF_EDGES) and module not in WITHOUT_EDGE else ()


def page() -> str:
    lines = ["| metric | type | unit | labels | series | of | meaning |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(_cell, _cells(row)))} |" for row in rows()]
    return f"{INTRODUCTION}\n" + "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    one = row.measure
    labels = ", ".join(row.labels) or "-"
    kind = Kind(one.kind).value
    meaning = one.text.rstrip(".") + (f"; {one.more}" if one.more else "")
    return f"`{one.name}`", kind, one.told_unit or "-", labels, one.told_series, row.who, meaning


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
