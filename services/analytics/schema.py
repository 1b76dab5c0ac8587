"""What the data source `redis_stream` gives: its columns, one table for each kind of stream.

Times are UTC; sizes are octets; counts of a sample are of its interval. docs/analytics.md has these texts.
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
    DEAD = "dead"
    SAMPLES = "samples"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    meaning: str


PLACE = (
    Column("stream", TEXT, "key of the stream in the store"),
    Column("id", TEXT, "id of the entry, `<ms>-<number>`: with `stream` it names a row for ever"),
)
TROUBLE = (
    Column(
        "problem", TEXT, "null; or why the entry could not be read: then only what is known of it is not null"
    ),
    Column("raw", FIELDS, "null; of an entry that could not be read all its fields"),
)

ENTRIES = (
    *PLACE,
    Column("at", TIME, "when it was added, by its id"),
    Column("fields", FIELDS, "names and values as they are"),
)

DEAD = (
    *PLACE,
    Column("domain", TEXT, "transaction domain of the queue"),
    Column("queue", TEXT, "the queue in which it died; octets that are no UTF-8 stand as `\\xNN`"),
    Column("qid", TEXT, "id of the queue: one that is made anew under its name has another"),
    Column("died", TIME, "when it became a dead letter"),
    Column("enqueued", TIME, "when it was put in"),
    Column("first", TIME, "when it was first given out; null: never"),
    Column("last", TIME, "when it was last given out; null: never"),
    Column("reason", TEXT, "why it died, as `penstock dead list` says it"),
    Column("error", TEXT, "the last error in words, '' if nobody said one"),
    Column("origin", TEXT, "who put it in: a word for the protocol, and the peer's certificate or address"),
    Column(
        "edge",
        TEXT,
        "how it came in: the first word of `origin`, as `tmq`, `text`, `mca`, `ring`",
    ),
    Column("acquired", INT, "how often it was given out"),
    Column("failed", INT, "how often that failed"),
    Column("redriven", INT, "how often it had been brought back from the dead letters before"),
    Column("note", TEXT, "what was written beside it while it was tried, '' if nothing"),
    Column("size", LONG, "octets of its body"),
    Column("body", OCTETS, "its body, or the beginning of it; null with `bodies` = `none`"),
    Column("attributes", OCTETS, "its attributes as MessagePack; null if it has none"),
    *TROUBLE,
)

SAMPLES = (
    *PLACE,
    Column("domain", TEXT, "transaction domain whose stream it is in"),
    Column("at", TIME, "end of the interval, by the id"),
    Column(
        "kind",
        TEXT,
        "`queue`: what one process did with one queue; `edge`: how it was itself; `depth`: how a queue stood",
    ),
    Column("edge", TEXT, "queue, edge: the edge"),
    Column("process", TEXT, "queue, edge: the process, one name for its life"),
    Column("n", LONG, "queue, edge: number of the interval in the process; a repeat has the same"),
    Column("ms", LONG, "queue, edge: length of the interval in ms"),
    Column("queue", TEXT, "queue, depth: the queue"),
    Column("in", LONG, "queue: messages put in"),
    Column("in_octets", LONG, "queue: their octets"),
    Column("out", LONG, "queue: messages given out"),
    Column("out_octets", LONG, "queue: their octets"),
    Column("acked", LONG, "queue: messages acknowledged; depth: all since the queue was made"),
    Column("returned", LONG, "queue: messages that went back; depth: all since the queue was made"),
    Column("rejected", LONG, "queue: messages that the process sent to the dead letters"),
    Column("refused", REASONS, "queue: refusals of messages by reason; edge: of connections and requests"),
    Column("refused_puts", LONG, "queue: messages refused that were to be put in; null: an edge of before"),
    Column(
        "put", COUNTS, "queue: histogram of the time from request to durable answer, 16 counts (bounds PUT_S)"
    ),
    Column(
        "wait", COUNTS, "queue: histogram of the age of messages first given out, 16 counts (bounds WAIT_S)"
    ),
    Column("connections", LONG, "edge: open at the end"),
    Column("opened", LONG, "edge: opened in the interval"),
    Column("received_octets", LONG, "edge: read from peers"),
    Column("sent_octets", LONG, "edge: written to peers"),
    Column("len", LONG, "depth: messages in the queue"),
    Column("leased", LONG, "depth: of them, given out and not settled"),
    Column("oldest_ms", LONG, "depth: age of the oldest in ms, 0 if there is none"),
    Column("dead", LONG, "depth: dead letters that are there"),
    Column("qid", TEXT, "depth: id of the queue"),
    Column(
        "age_ms", LONG, "depth: with a queue's first one: ms since the queue was made; null: not the first"
    ),
    Column("added", LONG, "depth: messages put in since the queue was made"),
    Column("delivered", LONG, "depth: given out since then"),
    Column("fenced", LONG, "depth: settled too late since then"),
    Column("dead_all", LONG, "depth: died since then"),
    Column("expired", LONG, "depth: of them, of age"),
    Column("duplicates", LONG, "depth: calls that were asked again since then"),
    Column("redriven", LONG, "depth: dead letters brought back since then"),
    Column("purged", LONG, "depth: dead letters removed by hand since then"),
    Column("dead_trimmed", LONG, "depth: dead letters dropped for age or number since then"),
    Column("bytes_in", LONG, "depth: octets put in since then"),
    Column("bytes_out", LONG, "depth: octets acknowledged since then"),
    *TROUBLE,
)

COLUMNS: dict[Kind, tuple[Column, ...]] = {Kind.DEAD: DEAD, Kind.SAMPLES: SAMPLES, Kind.ENTRIES: ENTRIES}


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of a file as the schema has them: what a file of before does not have is null."""
    there = {*rows.schema.names}
    columns = [
        rows[each.name].cast(each.type) if each.name in there else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def arrow_schema(kind: Kind) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in COLUMNS[kind]])
