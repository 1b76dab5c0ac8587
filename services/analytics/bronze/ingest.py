"""Append what the store has to bronze: one streaming query for each kind, exactly once by its checkpoint.

Tasks write files; the driver commits those of a batch, with the query and the number of the batch: a batch that is
repeated after a kill finds itself in the table's log. A lost checkpoint doubles nothing: the query then begins behind
the greatest id of each stream in bronze.
"""

from __future__ import annotations

import json
import time
from threading import Event

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from services.analytics import delta, output
from services.analytics.bronze.log import INGEST
from services.analytics.bronze.records import NAME, Records, writing_option
from services.analytics.bronze.writing import Writing
from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.delta import TableError
from services.analytics.preflight import Seen
from services.analytics.settings import Settings
from services.analytics.tables import BRONZE
from services.redis_stream.schema import Kind

ROWS = 200_000  # of a task


def ingest(spark: SparkSession, settings: Settings, kind: Kind, seen: Seen) -> None:
    """Append all entries up to the ends that were seen. A batch that a killed run began is finished first.

    Raises StreamingQueryException, TableError.
    """
    if not (ends := seen.ends(kind)):
        return
    checkpoint = f"_checkpoints/{seen.dataset}/{kind}"
    options = {
        "url": settings.store,
        "kind": kind,
        "end": json.dumps(ends),
        "bodies": settings.read_bodies() if kind is Kind.DEAD else "full",
        "failOnDataLoss": str(settings.fail_on_loss),
        "connectTimeoutS": str(settings.patience_s),
        "rowsPerPartition": str(ROWS),
    }
    # Spark asks where to begin until the first batch is done
    if not any(name.isdigit() for name in output.times(settings.output, f"{checkpoint}/commits")):
        options["start"] = json.dumps(_read(settings.output, kind, seen))
    spark.dataSource.register(Records)
    Commits(settings.output, kind).follow(
        spark.readStream.format(NAME)
        .options(**options, **writing_option(_writing(settings, kind, seen)))
        .load(),
        output.spark_path(settings.output, checkpoint),
    )


def _writing(settings: Settings, kind: Kind, seen: Seen) -> Writing:
    table = BRONZE[kind]
    cleaning = Cleaning(
        kind,
        tuple(each.name for each in table.columns),
        seen.dataset,
        seen.now_ms + 1000 * settings.clock_slack_s,
        settings.bodies,
        settings.redact,
    )
    return Writing(output.absolute(settings.output), "/".join((*table.folder, table.name)), cleaning)


class Commits:
    """The commits of one query, a batch each."""

    def __init__(self, place: str, kind: Kind) -> None:
        self._output = place
        self._kind = kind
        self._table = BRONZE[kind]
        self._query: StreamingQuery | None = None
        self._is_started = Event()

    def follow(self, files: DataFrame, checkpoint: str) -> None:
        """Run the query to its end. Raises StreamingQueryException."""
        writing = files.writeStream.queryName(f"ingest {self._kind}").option("checkpointLocation", checkpoint)
        self._query = writing.trigger(availableNow=True).foreachBatch(self._commit).start()
        self._is_started.set()
        self._query.awaitTermination()

    def _commit(self, files: DataFrame, number: int) -> None:
        """Write the files of a batch and commit them, unless that was done before."""
        self._is_started.wait()
        assert self._query is not None
        batch = Transaction(f"{INGEST}{self._query.id}", number, time.time_ns() // 1_000_000)
        if not _is_done(delta.opened(self._output, self._table), batch) and (found := files.collect()):
            try:
                self._append(found, batch)
            except TableError:  # also if another job has just committed it
                if not _is_done(delta.opened(self._output, self._table), batch):
                    raise

    def _append(self, files: list[Row], batch: Transaction) -> None:
        with delta.changed(self._output, self._table) as there:
            if _is_done(there, batch):  # by another job; a commit of it from now on collides with this one
                return
            self._check_files(files)
            added: list[AddAction | RemoveAction] = [_added(each) for each in files]
            there.create_write_transaction(
                added,
                "append",
                there.schema(),
                [*self._table.partitions],
                commit_properties=CommitProperties(app_transactions=[batch]),
            )

    def _check_files(self, files: list[Row]) -> None:
        """Check that files of executors are where this process sees them. Raises TableError."""
        folder = "/".join((*self._table.folder, self._table.name))
        for each in () if output.is_bucket(self._output) else files:
            if not output.exists(self._output, f"{folder}/{each.path}"):
                raise TableError(
                    f"a task has written {folder}/{each.path} where this process does not find it: executors on other "
                    "machines need a folder that is shared under the same path, or a bucket"
                )


def _is_done(there: DeltaTable, batch: Transaction) -> bool:
    done = there.transaction_version(batch.app_id)
    return done is not None and done >= batch.version


def _added(file: Row) -> AddAction:
    stats = {"numRecords": file.rows, "nullCount": {"problem": file.rows - file.unreadable}}
    hour = {"day": file.day, "hour": file.hour}
    now_ms = time.time_ns() // 1_000_000
    return AddAction(file.path, file.octets, hour, now_ms, True, json.dumps(stats))


def _read(place: str, kind: Kind, seen: Seen) -> dict[str, str]:
    """Return the greatest id in bronze of each stream of this store that still exists. Ids are pairs of numbers."""
    parts = ", ".join(f"lpad(split_part(id, '-', {at}), 20, '0')" for at in (1, 2))
    dataset = seen.dataset.replace("'", "''")
    text = (
        f"SELECT stream, max(concat({parts})) AS last FROM {BRONZE[kind].view} WHERE dataset = '{dataset}' "
        "GROUP BY stream"
    )
    found = delta.query(place, text, BRONZE[kind]).to_pylist()
    return {
        row["stream"]: f"{int(row['last'][:20])}-{int(row['last'][20:])}"
        for row in found
        if row["stream"] in seen.streams
    }
