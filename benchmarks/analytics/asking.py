"""Time the table of deaths, computed by the job and by others, from an hour's letters up to several copies of all."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.analytics.bench import Bench
from benchmarks.analytics.deaths import by_duckdb, by_job, by_pandas, by_sql
from benchmarks.analytics.letters import drawn
from benchmarks.analytics.sessions import session

CORES = 2
COPIES = 4  # of the archive, the largest size
ROW_OCTETS = 600  # upper bound of the memory for one letter, in any of the programs
OURS, THEIRS = ("the job", "Spark SQL"), ("DuckDB", "pandas")
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.M)
FEWEST = "(select min(n) from (select count(distinct {}) as n from letters group by queue))"
VARIETY = f"""
select count(distinct fingerprint), count(distinct pattern), {FEWEST.format("reason")}, {FEWEST.format("origin")}
from letters
"""


def measure(bench: Bench) -> dict[str, Any]:
    """Time each program on each size. Raises OSError if the answers differ or there is no archive."""
    if bench.output is None:
        raise OSError("no run of the job has made an archive")
    archive = bench.output / "archive" / "dead"
    various, sizes = variety(archive, bench.day.letters), list[dict[str, Any]]()
    with session(CORES) as spark:
        _ask(spark, _hour(archive))  # not counted
        for what, files in _sizes(archive, bench.place.subfolder("copies")):
            rows = sum(pq.read_metadata(each).num_rows for each in files)
            bench.say(f"deaths of {what}: {rows:,} letters in {len(files)} files")
            rounds = [_ask(spark, files) for _ in range(bench.rounds)]
            seconds = {name: [each[name] for each in rounds] for name in rounds[0]}
            sizes.append({"what": what, "letters": rows, "seconds": seconds})
    return {"variety": various, "sizes": sizes}


def variety(archive: Path, letters: int) -> dict[str, int]:
    """Count distinct letters, in all and in the least varied queue. Raises OSError if this differs from the draws."""
    draws = drawn(letters)
    wanted = (draws.bodies(), len(set(draws.kind.tolist())))
    files = f"read_parquet('{archive}/*/*/*.parquet', hive_partitioning = false)"
    with duckdb.connect() as connection:
        connection.execute(f"create view letters as from {files}")
        (row,) = connection.sql(VARIETY).fetchall()
    if row[:2] != wanted:
        raise OSError(f"there must be {wanted} fingerprints and patterns: {row}")
    return dict(zip(("fingerprints", "patterns", "reasons", "origins"), row, strict=True))


def _hour(archive: Path) -> list[Path]:
    """Return the files of the hour with the most rows: the first and the last hour of a day are short."""
    files = archive.glob("day=*/hour=*/*.parquet")
    rows = {each: pq.read_metadata(each).num_rows for each in files}
    hours = {each.parent for each in rows}
    most = max(sorted(hours), key=lambda hour: sum(rows[each] for each in rows if each.parent == hour))
    return sorted(each for each in rows if each.parent == most)


def _sizes(archive: Path, copies: Path) -> Iterator[tuple[str, list[Path]]]:
    files = sorted(archive.glob("day=*/hour=*/*.parquet"))
    hours = sorted({each.parent for each in files})
    yield "one hour", _hour(archive)
    few = {*hours[: max(1, len(hours) // 4)]}
    yield "a quarter of the day", [each for each in files if each.parent in few]
    yield "the day", files
    rows = sum(pq.read_metadata(each).num_rows for each in files)
    if rows * COPIES * ROW_OCTETS < available():
        yield f"{COPIES} copies of the day", [*files, *_copied(archive, files, copies)]


def _copied(archive: Path, files: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Yield copies of the files as links, below the same day and hour."""
    for number in range(1, COPIES):
        for each in files:
            place = folder / str(number) / each.relative_to(archive)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(each, place)
            yield place


def available() -> int:
    """Return the octets of available memory."""
    found = AVAILABLE.search(Path("/proc/meminfo").read_text())
    return int(found[1]) * 1024 if found else 0


def _ask(spark: SparkSession, files: list[Path]) -> dict[str, float]:
    """Return the seconds by program. Raises OSError if the answers differ."""
    asked: dict[str, Callable[[], pa.Table]] = {
        "the job": lambda: by_job(spark, files),
        "Spark SQL": lambda: by_sql(spark, files),
        "DuckDB": lambda: by_duckdb(files, CORES),
        "pandas": lambda: by_pandas(files),
    }
    seconds, answers = dict[str, float](), dict[str, pa.Table]()
    for name, ask in asked.items():
        began = time.monotonic()
        answers[name] = ask()
        seconds[name] = time.monotonic() - began
    for name, answer in answers.items():
        if not answer.equals(answers["DuckDB"]):
            raise OSError(
                f"{name} does not answer as DuckDB does: {_first_difference(answer, answers['DuckDB'])}"
            )
    return seconds


def _first_difference(one: pa.Table, other: pa.Table) -> str:
    pairs = zip(one.to_pylist(), other.to_pylist(), strict=False)
    return next((f"{a} is not {b}" for a, b in pairs if a != b), f"{len(one)} rows are not {len(other)}")


def crossing(sizes: Sequence[dict[str, Any]]) -> str:
    """Describe in words from how many letters on Spark is the fastest."""
    best = [(each["letters"], _best(each, OURS), _best(each, THEIRS)) for each in sizes]
    wins = [at for at, (_, ours, theirs) in enumerate(best) if ours[1] < theirs[1]]
    letters, ours, theirs = best[-1]
    if wins and wins == [*range(wins[0], len(best))]:
        return f"Spark wins from {best[wins[0]][0]:,} letters on: {_told(*best[wins[0]])}."
    return f"Spark is never fastest up to {letters:,} letters on this machine; there {_told(letters, ours, theirs)}."


def _best(size: dict[str, Any], names: Sequence[str]) -> tuple[str, float]:
    times = {name: statistics.median(size["seconds"][name]) for name in names}
    name = min(times, key=times.__getitem__)
    return name, times[name]


def _told(letters: int, ours: tuple[str, float], theirs: tuple[str, float]) -> str:
    return f"{ours[0]} took {ours[1]:.2f} s and {theirs[0]} {theirs[1]:.2f} s"
