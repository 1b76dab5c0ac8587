"""Hours of many small files written anew as few large ones, and what is too old named for removal."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from services.analytics.aggregates.samples import HOURS, id_order
from services.analytics.compute import Compute, hours_below, later
from services.analytics.files import Files
from services.analytics.plan import Plan
from services.analytics.publish import RUNS, Move, done_file
from services.analytics.schema import Kind
from services.analytics.tables import AGGREGATES

MANY = 8  # files of an hour that may stay as they are
ROWS_A_FILE = 2_000_000
HOUR_MS = 3_600_000


def crowded(moves: list[Move], there: dict[str, list[str]]) -> dict[str, list[str]]:
    """Hours that would have too many files, with those that are there now. Keys are folders."""
    coming: dict[str, int] = {}
    for _, target in moves:
        folder = target.rpartition("/")[0]
        coming[folder] = coming.get(folder, 0) + 1
    return {folder: there[folder] for folder, number in coming.items() if number + len(there[folder]) > MANY}


def compact(
    spark: SparkSession,
    files: Files,
    compute: Compute,
    plan: Plan,
    staging: str,
    kind: Kind,
    moves: list[Move],
) -> tuple[list[Move], list[str]]:
    """The moves with compacted files instead of small ones, and the small ones that are then to be removed."""
    of_kind = [move for move in moves if move[1].startswith(f"archive/{kind}/")]
    folders = {target.rpartition("/")[0] for _, target in of_kind}
    full = crowded(of_kind, {folder: list(files.walk(folder)) for folder in folders})
    if not full:
        return moves, []
    target = f"{staging}/compact/{kind}"
    hours = [path.removeprefix(f"archive/{kind}/day=").replace("/hour=", "T") for path in full]
    rows = compute.rows(kind, hours).repartition(*HOURS).sortWithinPartitions(*HOURS, "stream", id_order())
    writer = rows.write.mode("overwrite").option("maxRecordsPerFile", ROWS_A_FILE)
    writer.partitionBy(*HOURS).parquet(files.uri(target))
    kept = [move for move in moves if move[1].rpartition("/")[0] not in full]
    return [*kept, *_moves(files, plan.run, target, kind)], [path for old in full.values() for path in old]


def _moves(files: Files, run: str, staged: str, kind: Kind) -> list[Move]:
    found, numbers = [], dict[str, int]()
    for source in files.walk(staged):
        within = source.removeprefix(f"{staged}/").rpartition("/")[0]
        number = numbers[within] = numbers.get(within, -1) + 1
        found.append((source, f"archive/{kind}/{within}/{run}-c{number:04d}.parquet"))
    return found


def expired(files: Files, plan: Plan) -> tuple[str, list[str]]:
    """The first hour that is kept, and all folders that are older."""
    if not plan.shape.retention_days:
        return "", []
    now = datetime.fromtimestamp(plan.now_ms / 1000, UTC).strftime("%Y-%m-%dT%H")
    first = later(now, -24 * plan.shape.retention_days)
    roots = [
        *(f"archive/{kind}" for kind in (Kind.DEAD, Kind.SAMPLES)),
        *(f"aggregates/{t.name}" for t in AGGREGATES),
    ]
    old = [
        f"{root}/day={hour[:10]}/hour={hour[11:]}"
        for root in roots
        for hour in sorted(hours_below(files, root))
        if hour < first
    ]
    limit_ms = plan.now_ms - 24 * plan.shape.retention_days * HOUR_MS
    return first, [*old, *_runs_before(files, limit_ms)]


def _runs_before(files: Files, limit_ms: int) -> list[str]:
    """What is kept of runs: their plans and summaries, their quarantine, and their reports."""
    runs = [each.name for each in files.list(RUNS) if each.is_folder and files.exists(done_file(each.name))]
    old = [run for run in runs if files.read_json(done_file(run))["now_ms"] < limit_ms]
    kinds = ("runs/{}", "quarantine/run={}", "reports/{}.html", "reports/{}.json")
    return [path for run in old for kind in kinds if files.exists(path := kind.format(run))]
