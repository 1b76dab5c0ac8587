"""Define every table that the job writes, with the meaning of its columns, for docs/analytics.md too.

The first two columns of all but `runs` are the day and the hour (UTC), texts. Files are in folders `day=YYYY-MM-DD`,
those of bronze in folders `hour=HH` below these. Rows of gold are sorted by their keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from services.redis_stream import schema
from services.redis_stream.schema import Kind
from services.store.model import PUT_S, WAIT_S

STRING, LONG, DOUBLE = StringType(), LongType(), DoubleType()


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and its meaning for the documentation."""

    name: str
    type: DataType  # of Spark SQL
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the job."""

    name: str
    meaning: str
    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    folder: tuple[str, ...] = ("gold",)  # in the output
    partitions: tuple[str, ...] = ("day",)

    @property
    def view(self) -> str:
        """Return its name in SQL."""
        return f"quarantine_{self.name}" if self.folder == ("quarantine",) else self.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return all columns, day and hour first."""
        return (*(HOUR if self.partitions else ()), *self.keys, *self.values)

    def key_names(self) -> list[str]:
        """Return the columns that identify a row, day and hour first."""
        return [each.name for each in (*HOUR, *self.keys)]

    def schema(self) -> StructType:
        """Return the schema; the comment of a column is its meaning."""
        fields = [
            StructField(each.name, each.type, metadata={"comment": each.meaning}) for each in self.columns
        ]
        return StructType(fields)


HOUR = (Column("day", STRING, "the day, UTC"), Column("hour", STRING, "the hour of it, 00 to 23"))
QUEUE = (Column("domain", STRING, "transaction domain"), Column("queue", STRING, "the queue"))
EDGE = Column("edge", STRING, "the edge: tmq, ring, ...")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
AGE_S = WAIT_S  # bounds of the histogram of times to death
COUNTERS = {
    "added": "messages published",
    "delivered": "messages delivered",
    "acked": "messages acknowledged",
    "returned": "messages returned",
    "fenced": "settled too late",
    "dead_all": "messages that died",
    "expired": "of them, expired",
    "duplicates": "repeated calls",
    "redriven": "dead letters redriven",
    "purged": "dead letters purged",
    "dead_trimmed": "dead letters dropped by age or number",
    "bytes_in": "octets published",
    "bytes_out": "octets acknowledged",
}
SUMS = {
    "in": "messages published",
    "in_octets": "their octets",
    "out": "messages delivered",
    "out_octets": "their octets",
    "acked": "messages acknowledged",
    "returned": "messages returned",
    "rejected": "messages that edges moved to the dead letters",
}


def _quantiles(of: str, what: str) -> tuple[Column, ...]:
    text = "{} of {} in seconds, linear inside a bucket; null: none"
    return tuple(
        Column(f"{of}_{name}", DOUBLE, text.format(f"quantile {share:.0%}", what))
        for name, share in QUANTILES.items()
    )


def _histogram(name: str, what: str, bounds: tuple[float, ...]) -> tuple[Column, ...]:
    bounded = ", ".join(f"{bound:g}" for bound in bounds)
    counts = Column(name, ArrayType(LONG), f"{what}: counts up to {bounded} seconds and above, merged")
    return (counts, *_quantiles(name, what))


REFUSED = Column("refused", MapType(STRING, LONG), "refusals by reason, in order of the reasons")

TRAFFIC = Table(
    "traffic",
    "Traffic of queues by the samples of edges; a sample that is repeated in its hour or the next counts once.",
    (*QUEUE, EDGE),
    (
        *(Column(name, LONG, text) for name, text in SUMS.items()),
        Column("in_rate", DOUBLE, "messages published per second, over the whole hour"),
        Column("out_rate", DOUBLE, "messages delivered per second, over the whole hour"),
        Column(
            "in_peak",
            DOUBLE,
            "messages published per second in the busiest 10 s; those of a sample are spread over its `ms`",
        ),
        Column("out_peak", DOUBLE, "messages delivered per second in the busiest 10 s, likewise"),
        *_histogram("put", "time from request to durable answer", PUT_S),
        *_histogram("wait", "age of messages at their first delivery", WAIT_S),
        REFUSED,
        Column("refused_all", LONG, "refusals of all reasons"),
        Column(
            "refused_puts",
            LONG,
            "refused puts; all refusals of edges that do not report puts",
        ),
        Column("availability", DOUBLE, "accepted share of puts; null: there were none"),
        Column(
            "budget_used",
            DOUBLE,
            "refused share of puts, relative to what the objective allows; above 1: exceeded",
        ),
    ),
)

DEPTHS = Table(
    "depths",
    "State of queues, sampled every 10 s while they change. Counters are differences from the queue's "
    "last sample in the hour before, otherwise from its first one; from 0 if the queue was created in the hour or "
    "the one before.",
    QUEUE,
    (
        Column("samples", LONG, "number of samples"),
        Column("len_min", LONG, "fewest messages"),
        Column("len_mean", DOUBLE, "average number of messages"),
        Column("len_max", LONG, "most messages"),
        Column("leased_max", LONG, "most leased messages"),
        Column("oldest_ms_max", LONG, "greatest age of the oldest message, ms"),
        Column("dead_last", LONG, "dead letters in the last sample"),
        Column("resets", LONG, "samples with a lower counter: the store had lost data"),
        *(Column(name, LONG, f"{text}, by the counter") for name, text in COUNTERS.items()),
    ),
)

EDGES = Table(
    "edges",
    "State of edges.",
    (EDGE,),
    (
        Column("processes", LONG, "processes that wrote samples"),
        Column(
            "connections_max",
            LONG,
            "most open connections of all processes at the end of an interval of 10 s",
        ),
        Column("opened", LONG, "connections opened"),
        Column("received_octets", LONG, "octets read from peers"),
        Column("sent_octets", LONG, "octets written to peers"),
        REFUSED,
    ),
)

DEATHS = Table(
    "deaths",
    "Dead letters by reason, and their age.",
    (*QUEUE, Column("reason", STRING, "why"), Column("edge", STRING, "the edge that had received it")),
    (
        Column("count", LONG, "dead letters"),
        Column("octets", LONG, "octets of their bodies"),
        *_histogram("age", "time from publish to death", AGE_S),
        Column("acquired_mean", DOUBLE, "average number of deliveries"),
        Column("redriven", LONG, "of them, those that had been redriven before"),
    ),
)

ORIGINS = Table(
    "origins",
    "Origins of dead letters: the most frequent of each queue and hour (`--top`).",
    (*QUEUE, Column("origin", STRING, "the protocol and the peer")),
    (Column("count", LONG, "dead letters"),),
)

FAILURES = Table(
    "failures",
    "Similar failures: the most frequent of each queue and hour (`--top`).",
    (
        *QUEUE,
        Column("reason", STRING, "why"),
        Column("pattern", STRING, "the error with numbers replaced by 0, at most 200 characters"),
        Column("fingerprint", STRING, "16 hex digits: the same for bodies that differ only in numbers"),
    ),
    (
        Column("count", LONG, "dead letters"),
        Column("first", TimestampType(), "when the first of them died"),
        Column("last", TimestampType(), "when the last of them died"),
        Column("example_id", STRING, "id of the oldest of them"),
        Column("example", STRING, "its error, redacted, at most 200 characters"),
    ),
)

REDRIVES = Table(
    "redrives",
    "Success of redrives.",
    QUEUE,
    (
        Column("redriven", LONG, "dead letters redriven, by the queue's counter"),
        Column("died_again", LONG, "messages that died again after a redrive at any time"),
        Column("success", DOUBLE, "1 - died_again / redriven, at least 0; null: none was redriven"),
    ),
)

CHANGES = Table(
    "changes",
    "Sudden changes compared with the week before; only hours that have ended. An hour is judged when it is computed, "
    "and again while reports cover it; late records of the week before do not change older ones.",
    (
        *QUEUE,
        Column("metric", STRING, "in, out, refused, deaths: a count; len_max; put_p99, wait_p99: seconds"),
    ),
    (
        Column("value", DOUBLE, "in this hour"),
        Column("week_hours", LONG, "known hours of the week before, at least 24"),
        Column("week_median", DOUBLE, "median of them"),
        Column(
            "week_spread",
            DOUBLE,
            "1.4826 x the median distance from the median (the standard deviation of a normal distribution)",
        ),
        Column(
            "z",
            DOUBLE,
            "distance from the median in spreads, or in the spread of pure chance if that is larger",
        ),
        Column("verdict", STRING, "up or down"),
    ),
)

GOLD = (TRAFFIC, DEPTHS, EDGES, DEATHS, ORIGINS, FAILURES, REDRIVES, CHANGES)

RUNS = Table(
    "runs",
    "Runs of the job that ended.",
    (Column("run", STRING, "name of the run"),),
    (
        Column("number", LONG, "number of the run, from 1"),
        Column("dataset", STRING, "id of the store's data; a store that lost its data has another one"),
        Column("now_ms", LONG, "the store's time at its beginning, ms since 1970"),
        Column("dead", LONG, "dead letters read, with those of earlier runs that were killed"),
        Column("dead_quarantined", LONG, "of them, unreadable"),
        Column("dead_gone", LONG, "dead letters that were redriven or removed before they were read"),
        Column("samples", LONG, "samples read"),
        Column("samples_quarantined", LONG, "of them, unreadable"),
        Column("samples_lost", LONG, "samples that were trimmed before they were read"),
        Column("streams_lost", LONG, "streams that lost an unknown number of entries"),
        Column("is_maintained", BooleanType(), "whether it removed old rows and optimized the tables"),
        Column("ends", MapType(STRING, STRING), "id up to which each stream was read, by its key"),
        Column("added", MapType(STRING, LONG), "entries ever added to each stream, by its key"),
        Column(
            "known", MapType(STRING, LONG), "versions and lengths of tables, from which the next run counts"
        ),
        Column("seconds", MapType(STRING, DOUBLE), "duration of each step in seconds"),
    ),
    folder=(),
    partitions=(),
)

DATASET = Column("dataset", STRING, "id of the store's data; a store that lost its data has another one")
FOUND = (
    Column("fingerprint", STRING, "16 hex digits: the same for bodies that differ only in numbers"),
    Column("pattern", STRING, "the error with numbers replaced by 0, at most 200 characters"),
)
MEANINGS = {
    Kind.DEAD: "Dead letters as they were read, each once; redacted. Rows with a `problem` are unreadable.",
    Kind.SAMPLES: "Samples as they were read, each once. Rows with a `problem` are unreadable.",
}


def _of_source(kind: Kind, folder: str, partitions: tuple[str, ...], meaning: str) -> Table:
    columns = [Column(each.name, from_arrow_type(each.type), each.meaning) for each in schema.COLUMNS[kind]]
    found = FOUND if kind is Kind.DEAD else ()
    keys, values = columns[:2], columns[2:]
    return Table(kind, meaning, (DATASET, *keys), (*values, *found), (folder,), partitions)


BRONZE = {kind: _of_source(kind, "bronze", ("day", "hour"), meaning) for kind, meaning in MEANINGS.items()}
QUARANTINE = {
    kind: _of_source(kind, "quarantine", ("day",), f"Unreadable {what}, with the reason as `problem`.")
    for kind, what in ((Kind.DEAD, "dead letters"), (Kind.SAMPLES, "samples"))
}
ALL = (*BRONZE.values(), *QUARANTINE.values(), *GOLD, RUNS)
