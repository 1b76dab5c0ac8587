"""Define the fields of each kind of entry, their conversion, and their columns."""

from __future__ import annotations

from dataclasses import dataclass

from services.redis_stream import convert
from services.redis_stream.convert import Convert

VERSION = b"1"  # of samples


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an entry."""

    column: str
    convert: Convert
    name: str = ""  # name in the entry; '': that of the column
    needed: bool = True  # an entry without it is malformed
    default: bytes | None = None  # used if it is missing; None: null

    @property
    def key(self) -> bytes:
        """Return the name in the entry."""
        return (self.name or self.column).encode()


DEAD = (
    Field("reason", convert.text),
    Field("enqueued", convert.time),
    Field("died", convert.time),
    Field("origin", convert.text),
    Field("acquired", convert.small),
    Field("failed", convert.small),
    Field("first", convert.time_or_never),
    Field("last", convert.time_or_never),
    Field("error", convert.text),
    Field("body", convert.octets),
    Field("attributes", convert.octets, needed=False),
    Field("note", convert.text, needed=False, default=b""),
    Field("redriven", convert.small, needed=False, default=b"0"),
)


def _counts(*names: str, how: Convert = convert.count) -> tuple[Field, ...]:
    return tuple(Field(name, how) for name in names)


_STATES = ("len", "leased", "oldest_ms", "dead")
_COUNTERS = (
    *("added", "delivered", "acked", "returned", "fenced", "dead_all", "expired", "duplicates", "redriven"),
    *("purged", "dead_trimmed", "bytes_in", "bytes_out"),
)


_INTERVAL = (Field("edge", convert.text), Field("process", convert.text), *_counts("n", "ms"))

SAMPLES: dict[bytes, tuple[Field, ...]] = {
    b"queue": (
        *_INTERVAL,
        Field("queue", convert.text),
        *_counts("in", "in_octets", "out", "out_octets", "acked", "returned", "rejected"),
        Field("refused", convert.reasons),
        Field("refused_puts", convert.count, needed=False),
        Field("put", convert.histogram),
        Field("wait", convert.histogram),
    ),
    b"edge": (
        *_INTERVAL,
        *_counts("connections", "opened", "received_octets", "sent_octets"),
        Field("refused", convert.reasons),
    ),
    b"depth": (
        Field("queue", convert.text),
        Field("qid", convert.text),
        *_counts(*_STATES, *_COUNTERS, how=convert.total),
        Field("age_ms", convert.total, needed=False),
    ),
}
