"""Every table that the job writes, and what its columns mean; docs/analytics.md has these texts.

All tables lie in folders `day=YYYY-MM-DD/hour=HH` (UTC), which are their first two columns. Rows are sorted by
their keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from services.store.model import PUT_S, WAIT_S


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # as Spark SQL writes it
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    meaning: str
    keys: tuple[Column, ...]
    values: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*HOUR, *self.keys, *self.values)

    def key_names(self) -> list[str]:
        """Which make a row one of its kind, day and hour first."""
        return [each.name for each in (*HOUR, *self.keys)]

    def schema(self) -> StructType:
        found = StructType.fromDDL(", ".join(f"`{each.name}` {each.type}" for each in self.columns))
        assert isinstance(found, StructType)
        return found


HOUR = (Column("day", "string", "the day, UTC"), Column("hour", "string", "the hour of it, 00 to 23"))
QUEUE = (Column("domain", "string", "transaction domain"), Column("queue", "string", "the queue"))
EDGE = Column("edge", "string", "the edge: tmq, ring, ...")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
AGE_S = WAIT_S  # bounds of the histogram of times to death
COUNTERS = {
    "added": "messages put in",
    "delivered": "messages given out",
    "acked": "messages acknowledged",
    "returned": "messages that went back",
    "fenced": "settled too late",
    "dead_all": "messages that died",
    "expired": "of them, of age",
    "duplicates": "calls that were asked again",
    "redriven": "dead letters brought back",
    "purged": "dead letters removed by hand",
    "dead_trimmed": "dead letters dropped for age or number",
    "bytes_in": "octets put in",
    "bytes_out": "octets acknowledged",
}
SUMS = {
    "in": "messages put in",
    "in_octets": "their octets",
    "out": "messages given out",
    "out_octets": "their octets",
    "acked": "messages acknowledged",
    "returned": "messages that went back",
    "rejected": "messages that edges sent to the dead letters",
}


def _quantiles(of: str, what: str) -> tuple[Column, ...]:
    text = "{} of them in seconds are {} at most, linear inside of a bucket; null: there were none"
    return tuple(
        Column(f"{of}_{name}", "double", text.format(f"{share:.0%}", what))
        for name, share in QUANTILES.items()
    )


def _histogram(name: str, what: str, bounds: tuple[float, ...]) -> tuple[Column, ...]:
    bounded = ", ".join(f"{bound:g}" for bound in bounds)
    counts = Column(name, "array<bigint>", f"{what}: counts up to {bounded} seconds and above, merged")
    return (counts, *_quantiles(name, what))


REFUSED = Column("refused", "map<string,bigint>", "refusals by reason, in order of the reasons")

TRAFFIC = Table(
    "traffic",
    "What edges did with queues, by their samples; a sample that is repeated in its hour or the next counts once.",
    (*QUEUE, EDGE),
    (
        *(Column(name, "bigint", text) for name, text in SUMS.items()),
        Column("in_rate", "double", "messages in a second put in, over the whole hour"),
        Column("out_rate", "double", "messages in a second given out, over the whole hour"),
        Column(
            "in_peak",
            "double",
            "messages in a second put in, in the busiest 10 s; those of a sample are spread over its `ms`",
        ),
        Column("out_peak", "double", "messages in a second given out, in the busiest 10 s, likewise"),
        *_histogram("put", "time from request to durable answer", PUT_S),
        *_histogram("wait", "age of messages when first given out", WAIT_S),
        REFUSED,
        Column("refused_all", "bigint", "refusals of all reasons"),
        Column(
            "refused_puts",
            "bigint",
            "messages that were to be put in, and were refused; of an edge that does not say it, all refusals",
        ),
        Column("availability", "double", "accepted of all that were to be put in; null: nothing was"),
        Column(
            "budget_used", "double", "refused share as a part of what the objective leaves; above 1: too much"
        ),
    ),
)

DEPTHS = Table(
    "depths",
    "How queues stood, by what the store says of them every 10 s while they change. Counters rise from the queue's "
    "last look in the hour before, else from its first one; from 0 if the queue was made in the hour or the one "
    "before: it says so, or does not say and has a new id, or others were looked at 10 minutes before.",
    QUEUE,
    (
        Column("samples", "bigint", "how often it was looked at"),
        Column("len_min", "bigint", "fewest messages"),
        Column("len_mean", "double", "messages on average over the looks"),
        Column("len_max", "bigint", "most messages"),
        Column("leased_max", "bigint", "most messages given out and not settled"),
        Column("oldest_ms_max", "bigint", "greatest age of the oldest message, ms"),
        Column("dead_last", "bigint", "dead letters at the last look"),
        Column("resets", "bigint", "looks at which a counter had fallen: the store had lost data"),
        *(
            Column(name, "bigint", f"{text}: sum of what the counter rose from look to look")
            for name, text in COUNTERS.items()
        ),
    ),
)

EDGES = Table(
    "edges",
    "How edges were themselves.",
    (EDGE,),
    (
        Column("processes", "bigint", "processes that told of themselves"),
        Column(
            "connections_max",
            "bigint",
            "most connections open at the end of 10 s, of all processes; between two ends there may be more",
        ),
        Column("opened", "bigint", "connections opened"),
        Column("received_octets", "bigint", "octets read from peers"),
        Column("sent_octets", "bigint", "octets written to peers"),
        REFUSED,
    ),
)

DEATHS = Table(
    "deaths",
    "What died, and how old it was.",
    (*QUEUE, Column("reason", "string", "why"), Column("edge", "string", "the edge by which it had come in")),
    (
        Column("count", "bigint", "dead letters"),
        Column("octets", "bigint", "octets of their bodies"),
        *_histogram("age", "time from put to death", AGE_S),
        Column("acquired_mean", "double", "how often they had been given out, on average"),
        Column("redriven", "bigint", "of them, those that had been brought back before"),
    ),
)

ORIGINS = Table(
    "origins",
    "Whose messages died: the most frequent of each queue and hour (`--top`).",
    (*QUEUE, Column("origin", "string", "who put them in: a word for the protocol, and the peer")),
    (Column("count", "bigint", "dead letters"),),
)

FAILURES = Table(
    "failures",
    "What fails alike: the most frequent of each queue and hour (`--top`).",
    (
        *QUEUE,
        Column("reason", "string", "why"),
        Column("pattern", "string", "the error, its numbers and hex numbers as 0, at most 200 characters"),
        Column("fingerprint", "string", "16 hex digits: the same for bodies that differ only in numbers"),
    ),
    (
        Column("count", "bigint", "dead letters"),
        Column("first", "timestamp", "when the first of them died"),
        Column("last", "timestamp", "when the last of them died"),
        Column("example_id", "string", "id of the oldest of them"),
        Column("example", "string", "its error, redacted, at most 200 characters"),
    ),
)

REDRIVES = Table(
    "redrives",
    "Whether it helped to bring dead letters back.",
    QUEUE,
    (
        Column("redriven", "bigint", "dead letters brought back, by the queue's counter"),
        Column(
            "died_again", "bigint", "messages that died and had been brought back before, whenever that was"
        ),
        Column("success", "double", "1 - died_again / redriven, at least 0; null: none was brought back"),
    ),
)

CHANGES = Table(
    "changes",
    "What is suddenly otherwise than in the week before; only hours that have ended, and queues and metrics that are.",
    (
        *QUEUE,
        Column("metric", "string", "in, out, refused, deaths: a count; len_max; put_p99, wait_p99: seconds"),
    ),
    (
        Column("value", "double", "in this hour"),
        Column("week_hours", "bigint", "hours of the week before that are known, 24 at least"),
        Column("week_median", "double", "median of them"),
        Column(
            "week_spread", "double", "1.4826 x the median distance from the median: sd where all is normal"
        ),
        Column(
            "z", "double", "distance from the median in spreads, or in what chance alone makes of it if more"
        ),
        Column("verdict", "string", "up or down"),
    ),
)

AGGREGATES = (TRAFFIC, DEPTHS, EDGES, DEATHS, ORIGINS, FAILURES, REDRIVES, CHANGES)
