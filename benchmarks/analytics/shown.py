"""What was found, as tables; each rate beside what is wanted of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

RATE = 100_000  # records/s, the whole job on two cores
MEMORY_MIB = 4096
READING = 0.5  # of the plain loop, a core
SCALING = 1.6  # from one core to two
EDGE = 0.9  # of what it does without a run


def middle(values: Sequence[float]) -> float:
    return statistics.median(values)


def show(found: dict[str, Any], console: Console) -> None:
    filled = found["fill"]
    console.print(
        f"{filled['letters']:,} dead letters of {filled['queues']} queues and {filled['samples']:,} samples, one day; "
        f"{filled['store_mib']:,.0f} MiB in the store"
    )
    for name, part in (("reading", _reading), ("job", _job), ("asked", _asked), ("edge", _edge)):
        if name in found:
            console.print(part(found[name]))


def _reading(found: dict[str, Any]) -> Table:
    table = Table(
        "", "loop, records/s", "Spark, one core", "ratio", "two cores", "1 -> 2", title="Reading alone"
    )
    for kind, each in found.items():
        loop, one, two = middle(each["loop"]), middle(each["one core"]), middle(each["two cores"])
        wanted = (f"{one / loop:.2f} (>= {READING})", f"{two:,.0f}", f"{two / one:.2f}")
        table.add_row(kind, f"{loop:,.0f}", f"{one:,.0f}", *wanted)
    return table


def _job(found: dict[str, Any]) -> Table:
    table = Table(
        "", "records/s", "seconds", "peak memory", "1 -> 2", title="The whole job, after Spark's start"
    )
    rates = {
        master: middle([each["records"] / each["seconds"] for each in runs]) for master, runs in found.items()
    }
    for master, runs in sorted(found.items()):
        two = master == "local[2]"
        peak = max(each["peak_mib"] for each in runs)
        table.add_row(
            master,
            f"{rates[master]:,.0f}" + (f" (>= {RATE:,})" if two else ""),
            f"{middle([each['seconds'] for each in runs]):.1f}",
            f"{peak:,.0f} MiB" + (f" (< {MEMORY_MIB:,})" if two else ""),
            f"{rates['local[2]'] / rates['local[1]']:.2f} (>= {SCALING})" if two else "",
        )
    for step in found["local[2]"][0]["steps"]:
        each = middle([run["steps"][step] for run in found["local[2]"]])
        table.add_row(f"  {step}", "", f"{each:.1f}", "", "")
    return table


def _asked(found: list[dict[str, Any]]) -> Table:
    table = Table(
        "letters",
        "Spark, s",
        "DuckDB, s",
        "pandas, s",
        "Spark / DuckDB",
        "Spark / pandas",
        title="One question",
    )
    for each in found:
        spark, duck, pandas = (middle(each["seconds"][name]) for name in ("Spark", "DuckDB", "pandas"))
        ratios = (f"{spark / duck:.2f}", f"{spark / pandas:.2f}")
        table.add_row(f"{each['letters']:,}", *(f"{value:.2f}" for value in (spark, duck, pandas)), *ratios)
    return table


def _edge(found: dict[str, Any]) -> Table:
    table = Table("the job runs", "without, msg/s", "during", "ratio", title="An edge beside a run, 50 x 1")
    for name, each in found.items():
        without, during = middle(each["without"]), middle(each["during"])
        table.add_row(name, f"{without:,.0f}", f"{during:,.0f}", f"{each['ratio']:.2f} (>= {EDGE})")
    return table
