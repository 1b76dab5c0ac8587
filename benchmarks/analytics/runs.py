"""Measure whole runs of the job: all records, nothing new, a small hour, one core, and ten days."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.analytics.bench import Bench, expect
from benchmarks.analytics.filling import HOUR_MS, Day

HOURLY = 2000  # letters of a small run
DAYS = 10


def measure_job(bench: Bench) -> dict[str, Any]:
    """Run the job over all records, then with nothing new, then with the few letters of the last hour."""
    found = {"all records": bench.first()}
    found["nothing new"] = expect(bench.run("first", "nothing"), 0, 0)
    bench.add(Day(HOURLY, 0, _now_ms(bench), hours=1))
    found[f"{HOURLY:,} new letters"] = expect(bench.run("first", "hourly"), HOURLY, 0)
    return {name: asdict(each) for name, each in found.items()}


def measure_cores(bench: Bench) -> dict[str, Any]:
    """Run the job over the same records on two cores and on one."""
    two = bench.first()
    one = expect(bench.run("one", "all", cores=1), two.dead, two.samples)
    return {"1": asdict(one), "2": asdict(two)}


def measure_days(bench: Bench) -> list[dict[str, Any]]:
    """Run the job over the letters of ten days, one day a run; the store has one day at a time.

    It removes what the store has, so that no part can follow.
    """
    with bench.server.connect() as connection:
        connection.delete(bench.samples, *bench.dead)
        end_ms, found = _now_ms(bench), []
        for number in range(DAYS):
            bench.add(
                Day(bench.records, 0, end_ms - (DAYS - 1 - number) * bench.hours * HOUR_MS, bench.hours)
            )
            ended = bench.run("days", f"day{number + 1}")
            found.append(asdict(expect(ended, bench.records, 0)))
            for key in bench.dead:
                connection.xtrim(key, maxlen=0, approximate=False)  # a stream keeps its last id
    return found


def _now_ms(bench: Bench) -> int:
    with bench.server.connect() as connection:
        seconds, micros = connection.time()
        return int(seconds * 1000 + micros // 1000)
