"""Define the columns of the data source `redis_stream`, one table for each kind of stream.

Times are UTC; sizes are octets; counts of a sample cover its interval. docs/analytics.md contains these texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

TEXT, OCTETS, LONG, INT = pa.string(), pa.binary(), pa.int64(), pa.int32()
TIME = pa.timestamp("us", tz="UTC")
COUNTS = pa.list_(LONG)
REASONS = pa.map_(TEXT, LONG)
FIELDS = pa.map_(TEXT, OCTETS)


class Kind(StrEnum):
    """A kind of stream: dead letters, samples, or entries of any stream."""

    DEAD = "dead"
    SAMPLES = "samples"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and its meaning for the documentation."""

    name: str
    type: pa.DataType
    meaning: str


PLACE = (
    Column("stream", TEXT, "key of the stream in the store"),
    Column("id", TEXT, "id of the entry, `<ms>-<number>`: with `stream` it identifies a row for ever"),
)
TROUBLE = (
    Column("problem", TEXT, "null, or why the entry could not be read; then unknown columns are null"),
    Column("raw", FIELDS, "null, or all fields of an entry that could not be read"),
)

ENTRIES = (
    *PLACE,
    Column("at", TIME, "when it was added, by its id"),
    Column("fields", FIELDS, "names and values as they are"),
)

DEAD = (
    *PLACE,
    Column("domain", TEXT, "transaction domain of the queue"),
    Column("queue", TEXT, "the queue in which it died; octets that are not UTF-8 are written as `\\xNN`"),
    Column("qid", TEXT, "id of the queue; a queue created again under the same name has another one"),
    Column("died", TIME, "when it became a dead letter"),
    Column("enqueued", TIME, "when it was published"),
    Column("first", TIME, "time of its first delivery; null: never"),
    Column("last", TIME, "time of its last delivery; null: never"),
    Column("reason", TEXT, "the reason, as in `penstock dead list`"),
    Column("error", TEXT, "the text of the last error, '' without one"),
    Column("origin", TEXT, "where it came from: the protocol, and the peer's certificate or address"),
    Column(
        "edge",
        TEXT,
        "the edge that received it: the first word of `origin`, as `tmq`, `text`, `mca`, `ring`",
    ),
    Column("acquired", INT, "number of deliveries"),
    Column("failed", INT, "number of failed deliveries"),
    Column("redriven", INT, "how often it had been redriven before"),
    Column("note", TEXT, "the note of a sending agent, '' without one"),
    Column("size", LONG, "octets of its body"),
    Column("body", OCTETS, "its body, or the beginning of it; null with `bodies` = `none`"),
    Column("attributes", OCTETS, "its attributes as MessagePack; null without any"),
    *TROUBLE,
)

SAMPLES = (
    *PLACE,
    Column("domain", TEXT, "transaction domain of its stream"),
    Column("at", TIME, "end of the interval, by the id"),
    Column(
        "kind",
        TEXT,
        "`queue`: what one process did with one queue; `edge`: the state of a process; `depth`: the state of a queue",
    ),
    Column("edge", TEXT, "queue, edge: the edge"),
    Column("process", TEXT, "queue, edge: name of the process"),
    Column("n", LONG, "queue, edge: number of the interval in the process; a repeat has the same"),
    Column("ms", LONG, "queue, edge: length of the interval in ms"),
    Column("queue", TEXT, "queue, depth: the queue"),
    Column("in", LONG, "queue: messages published"),
    Column("in_octets", LONG, "queue: their octets"),
    Column("out", LONG, "queue: messages delivered"),
    Column("out_octets", LONG, "queue: their octets"),
    Column("acked", LONG, "queue: messages acknowledged; depth: total since the queue was created"),
    Column("returned", LONG, "queue: messages returned; depth: total since the queue was created"),
    Column("rejected", LONG, "queue: messages that the process moved to the dead letters"),
    Column("refused", REASONS, "queue: refusals of messages by reason; edge: of connections and requests"),
    Column("refused_puts", LONG, "queue: refused puts; null: an older edge"),
    Column(
        "put", COUNTS, "queue: histogram of the time from request to durable answer, 16 counts (bounds PUT_S)"
    ),
    Column(
        "wait",
        COUNTS,
        "queue: histogram of the age of messages at their first delivery, 16 counts (bounds WAIT_S)",
    ),
    Column("connections", LONG, "edge: open at the end"),
    Column("opened", LONG, "edge: opened in the interval"),
    Column("received_octets", LONG, "edge: read from peers"),
    Column("sent_octets", LONG, "edge: written to peers"),
    Column("len", LONG, "depth: messages in the queue"),
    Column("leased", LONG, "depth: of them, leased"),
    Column("oldest_ms", LONG, "depth: age of the oldest in ms, 0 in an empty queue"),
    Column("dead", LONG, "depth: current dead letters"),
    Column("qid", TEXT, "depth: id of the queue"),
    Column(
        "age_ms", LONG, "depth: in a queue's first sample: ms since the queue was created; otherwise null"
    ),
    Column("added", LONG, "depth: messages published since the queue was created"),
    Column("delivered", LONG, "depth: delivered since then"),
    Column("fenced", LONG, "depth: settled too late since then"),
    Column("dead_all", LONG, "depth: died since then"),
    Column("expired", LONG, "depth: of them, expired"),
    Column("duplicates", LONG, "depth: repeated calls since then"),
    Column("redriven", LONG, "depth: dead letters redriven since then"),
    Column("purged", LONG, "depth: dead letters purged since then"),
    Column("dead_trimmed", LONG, "depth: dead letters dropped by age or number since then"),
    Column("bytes_in", LONG, "depth: octets published since then"),
    Column("bytes_out", LONG, "depth: octets acknowledged since then"),
    *TROUBLE,
)

COLUMNS: dict[Kind, tuple[Column, ...]] = {Kind.DEAD: DEAD, Kind.SAMPLES: SAMPLES, Kind.ENTRIES: ENTRIES}


def arrow_schema(kind: Kind) -> pa.Schema:
    """Return the Arrow schema of a kind."""
    return pa.schema([(column.name, column.type) for column in COLUMNS[kind]])
