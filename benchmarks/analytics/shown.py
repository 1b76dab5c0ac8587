"""Show the results as tables: on the terminal, and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.analytics.findings import findings, rate
from benchmarks.analytics.job import JAVA, PYTHON
from benchmarks.analytics.reading import LOOP, ONE, TWO
from benchmarks.machine import Machine
from benchmarks.parts import Found, Part, Parts, Row
from benchmarks.results import median

SMALL = "a small run or a part, not to be quoted"
RUN = ("records/s", "seconds", "of them with Spark", "memory at most, MiB", "Java", "Python")
ENGINES = ("Spark", "DuckDB", "Polars")


def _reading(found: dict[str, Found]) -> Iterator[Row]:
    for kind, each in found.items():
        yield [kind, *(f"{each[name]:,.0f}" for name in (LOOP, ONE, TWO))]


def _run(name: str, run: Found) -> Row:
    memory = [f"{run['memory_mib'][of]:,.0f}" for of in ("all", JAVA, PYTHON)]
    return [name, f"{rate(run):,.0f}", f"{run['seconds']:.1f}", f"{run['spark_s']:.1f}", *memory]


def _job(found: dict[str, Found]) -> Iterator[Row]:
    for name, run in found.items():
        yield _run(name, run)
        for step, seconds in run["steps"].items():
            yield [f"- {step}", "", f"{seconds:.1f}", *[""] * 4]


def _cores(found: dict[str, Found]) -> Iterator[Row]:
    yield from _job({f"local[{cores}]": run for cores, run in found.items()})


def _days(found: list[Found]) -> Iterator[Row]:
    for number, run in enumerate(found, 1):
        yield _run(str(number), run)


def _gold(found: Found) -> Iterator[Row]:
    for name, each in found["engines"].items():
        medians = {engine: median(each[engine]) for engine in ENGINES}
        ratios = [f"{medians[ENGINES[0]] / medians[engine]:.2f}" for engine in ENGINES[1:]]
        yield [name, f"{each[ENGINES[0]][0]:.2f}", *(f"{each:.2f}" for each in medians.values()), *ratios]


def _all_gold(found: Found) -> str:
    rows = ", ".join(f"{name} {number:,}" for name, number in found["rows"].items())
    return (
        f"All gold tables from bronze: {found['seconds']:.1f} s in a new session. Rows: {rows}. All engines had the "
        "rows of the gold tables."
    )


PARTS = {
    "reading": Part("Reading alone, records/s", ("", LOOP, f"Spark, {ONE}", TWO), _reading),
    "cores": Part("The whole job on two cores and on one", ("", *RUN), _cores),
    "job": Part("The whole job, and the runs after it", ("", *RUN), _job),
    "gold": Part(
        "Gold tables from bronze, seconds",
        ("", "Spark, first", *ENGINES, *(f"Spark / {engine}" for engine in ENGINES[1:])),
        _gold,
        _all_gold,
    ),
    "ten_days": Part("Dead letters of ten days, one day a run", ("day", *RUN), _days),
}


def caption(found: Found) -> str:
    filled, machine = found["fill"], Machine(**found["machine"])
    records = (
        f"{filled['letters']:,} dead letters of {filled['queues']} queues and {filled['samples']:,} samples"
    )
    return (
        f"{found['date'][:10]}, {'one round' if found['is_full'] else SMALL}: {records}, of {filled['hours']} hours, "
        f"{filled['store_mib']:,.0f} MiB in the store; {machine}. Commit {found['commit'] or 'unknown'}."
    )


SHOWN = Parts(PARTS, findings, caption)
