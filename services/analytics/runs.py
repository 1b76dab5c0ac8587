"""The table `runs`: what each run has read, and what the next one must know of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

from services.analytics import delta
from services.analytics.hours import hour_at
from services.analytics.preflight import Before, Seen, expected
from services.analytics.settings import Settings
from services.analytics.tables import BRONZE, QUARANTINE, RUNS
from services.redis_stream.schema import Kind

MOST_COMMITS = 200  # of a table since the run before; each costs a file to read
LATEST_MS = (1 << 63) - 1
APPENDED = "STREAMING UPDATE"  # the operation of a streaming query in a table's history


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the table; see its columns in `tables.RUNS`."""

    run: str
    dataset: str
    now_ms: int
    dead: int
    dead_quarantined: int
    dead_gone: int
    samples: int
    samples_quarantined: int
    samples_lost: int
    streams_lost: int
    is_maintained: bool
    ends: dict[str, str] = field(repr=False)
    added: dict[str, int] = field(repr=False)
    known: dict[str, int]
    seconds: dict[str, float]

    def shown(self) -> dict[str, Any]:
        """Return what a log line shows of it."""
        hidden = ("ends", "added", "known")
        return {name: value for name, value in asdict(self).items() if name not in hidden}

    def records(self) -> dict[str, dict[str, int]]:
        """Return the report's counts of the run, by kind."""
        dead = _records(self.dead, self.dead_quarantined)
        samples = _records(self.samples, self.samples_quarantined)
        return {"dead": {**dead, "gone": self.dead_gone}, "samples": {**samples, "lost": self.samples_lost}}

    def missing(self) -> tuple[str, dict[str, int]]:
        """Return the hour of the run, and what is not in the tables of it, for the report."""
        return hour_at(self.now_ms), {
            "lost_samples": self.samples_lost,
            "lost_streams": self.streams_lost,
            "quarantined_dead": self.dead_quarantined,
            "quarantined_samples": self.samples_quarantined,
        }


def _records(read: int, quarantined: int) -> dict[str, int]:
    return {"read": read, "archived": read - quarantined, "quarantined": quarantined}


def table(spark: SparkSession, settings: Settings) -> DataFrame:
    """Return the table."""
    return delta.read(spark, settings.output, RUNS)


def last(spark: SparkSession, settings: Settings) -> Row | None:
    """Return the newest run."""
    return table(spark, settings).orderBy(sql.desc("now_ms")).first()


def before(row: Row | None) -> Before:
    """Return what the next run must know of a run."""
    return Before() if row is None else Before(row.dataset, row.now_ms, row.ends, row.added)


def since(spark: SparkSession, settings: Settings, first_ms: int) -> list[Run]:
    """Return the runs that began at this time or later."""
    found = table(spark, settings).where(sql.col("now_ms") >= first_ms).select(*(f.name for f in fields(Run)))
    return [Run(*row) for row in found.collect()]


def is_done(spark: SparkSession, settings: Settings) -> bool:
    """Return whether a run of this name has ended."""
    return not table(spark, settings).where(sql.col("run") == settings.run).isEmpty()


def last_maintained_ms(spark: SparkSession, settings: Settings) -> int:
    """Return the store's time of the last run with maintenance, otherwise of the first run; 2**63 - 1 before that."""
    times = table(spark, settings).agg(
        sql.max(sql.when(sql.col("is_maintained"), sql.col("now_ms"))).alias("last"),
        sql.min("now_ms").alias("first"),
    )
    found = times.first()
    return int((found and (found.last or found.first)) or LATEST_MS)


def append(spark: SparkSession, settings: Settings, row: Run) -> None:
    """Append the row to the table."""
    rows = spark.createDataFrame([tuple(asdict(row).values())], RUNS.schema())
    rows.coalesce(1).write.format("delta").mode("append").save(delta.path(settings.output, RUNS))


class Counted:
    """Counts of new rows since the run before, by the tables themselves: rows of killed runs are included."""

    def __init__(self, spark: SparkSession, settings: Settings, previous: Row | None) -> None:
        self._spark = spark
        self._settings = settings
        self._known: dict[str, int] = previous.known if previous is not None else {}
        self.known: dict[str, int] = {}

    def appended(self, kind: Kind) -> int:
        """Return the number of rows appended to bronze of this kind."""
        place = delta.path(self._settings.output, BRONZE[kind])
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{place}` LIMIT {MOST_COMMITS}")
        found = history.select("version", "operation", "operationMetrics").collect()
        since = self._known.get(f"version of {kind}", -1)
        self.known[f"version of {kind}"] = max((row.version for row in found), default=since)
        return sum(
            int(row.operationMetrics.get("numOutputRows", 0))
            for row in found
            if row.version > since and row.operation == APPENDED
        )

    def quarantined(self, kind: Kind) -> int:
        """Return the number of rows added to the quarantine of this kind."""
        self.settle(kind)
        return max(0, self.known[f"rows of {kind}"] - self._known.get(f"rows of {kind}", 0))

    def settle(self, kind: Kind) -> None:
        """Note the length of the quarantine, also after the retention has shortened it."""
        self.known[f"rows of {kind}"] = delta.read(
            self._spark, self._settings.output, QUARANTINE[kind]
        ).count()


def missing(seen: Seen, previous: Row | None, kind: Kind, read: int) -> int:
    """Return how many entries were gone before they were read."""
    return max(0, expected(seen, before(previous), kind) - read)
