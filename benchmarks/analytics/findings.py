"""Compare a run's JSON results with the goals of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.analytics.reading import TWO
from benchmarks.parts import Found
from benchmarks.results import Finding, Target

RATE = Target(">=", 145_000)  # records/s of the whole job on two cores, as before Delta Lake
FLOOR = Target(">=", 100_000)
MEMORY = Target("<=", 2048)  # MiB
SCALING = Target(">=", 1.4)  # from one core to two
GOLD = Target("<=", 20)  # seconds
READING = {"dead": Target(">=", 297_142), "samples": Target(">=", 193_736)}  # rows/s, as before Delta Lake


def findings(found: Found) -> list[Finding]:
    """Return the findings of the parts that were run, in order."""
    parts = {"reading": _reading, "cores": _cores, "job": _job, "gold": _gold, "ten_days": _days}
    return [each for name, part in parts.items() if name in found for each in part(found[name])]


def _reading(found: Found) -> Iterator[Finding]:
    for kind, each in found.items():
        yield Finding("reading", f"{kind} read by Spark on two cores", [each[TWO]], "rows/s", READING[kind])


def _cores(found: Found) -> Iterator[Finding]:
    quotient = rate(found["2"]) / rate(found["1"])
    yield Finding("cores", "the whole job, two cores / one", [quotient], "x", SCALING)


def _job(found: dict[str, Found]) -> Iterator[Finding]:
    first = rate(found["all records"])
    yield Finding("job", "the whole job on two cores, after Spark's start", [first], "records/s", RATE)
    yield Finding("job", "the same, least rate", [first], "records/s", FLOOR)
    yield Finding("job", "its memory at most, all processes", [_most(found)], "MiB", MEMORY)


def _gold(found: Found) -> Iterator[Finding]:
    yield Finding("gold", "all gold tables of the day", [found["seconds"]], "s", GOLD)


def _days(found: list[Found]) -> Iterator[Finding]:
    most = _most(dict(enumerate(found)))
    yield Finding("ten_days", f"memory at most in {len(found)} days, a run each", [most], "MiB", MEMORY)


def rate(run: Found) -> float:
    """Return the records a second of a run after Spark's start; 0 if it did not start Spark."""
    return (run["dead"] + run["samples"]) / run["spark_s"] if run["spark_s"] else 0.0


def _most(runs: Mapping[Any, Found]) -> float:
    return max(each["memory_mib"]["all"] for each in runs.values())
