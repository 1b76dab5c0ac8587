"""Clean rows of the data source for bronze: redaction, fingerprints, implausible clocks, day and hour."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.cleaning.fingerprint import fingerprints, patterns
from services.analytics.cleaning.redaction import (
    redacted,
    redacted_attributes,
    redacted_fields,
    redacted_octets,
    redacted_problems,
)
from services.analytics.hours import HOUR_MS, hour_at
from services.redis_stream.convert import LATEST_MS
from services.redis_stream.schema import OCTETS, TEXT, Kind

EARLIEST_MS = 946_684_800_000  # the year 2000
AT = {Kind.DEAD: "died", Kind.SAMPLES: "at"}  # the column that decides the hour


@dataclass(frozen=True)
class Cleaning:
    """A function that makes rows of the data source rows of bronze."""

    kind: Kind
    names: tuple[str, ...]  # columns of bronze
    dataset: str
    latest_ms: int  # a record with a later time gets a `problem`
    bodies: str = "none"  # how much of each body to keep, as in `Settings`
    redact: tuple[str, ...] = ()

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the columns of bronze. rows: with all columns of the kind."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        at = columns[AT[self.kind]]
        problem = redacted_problems(columns["problem"], self.redact)
        columns["problem"] = pc.coalesce(problem, self._clock_problems(at))
        bodies = self.bodies if self.kind is Kind.DEAD else "full"
        columns["raw"] = redacted_fields(columns["raw"], self.redact, bodies)
        if self.kind is Kind.DEAD:
            columns |= self._letters(columns)
        columns["dataset"] = pa.array([self.dataset], TEXT).take(pa.array([0] * len(rows)))
        columns |= _hours(at, columns["problem"], columns["id"])
        return pa.RecordBatch.from_arrays([_plain(columns[name]) for name in self.names], names=[*self.names])

    def _letters(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the changed columns of dead letters, and the new ones."""
        body = redacted_octets(columns["body"], self.redact)
        error = redacted(columns["error"], self.redact)
        return {
            "fingerprint": fingerprints(body),
            "pattern": patterns(error),
            "error": error,
            "note": redacted(columns["note"], self.redact),
            "body": _kept(body, self.bodies),
            "attributes": redacted_attributes(columns["attributes"], self.redact),
        }

    def _clock_problems(self, at: pa.Array) -> pa.Array:
        """Return the problem of each time before the year 2000 or after `latest_ms`, null for the others."""
        earliest, latest = (pa.scalar(ms * 1000).cast(at.type) for ms in (EARLIEST_MS, self.latest_ms))
        is_wrong = pc.fill_null(pc.or_(pc.less(at, earliest), pc.greater(at, latest)), False)
        if not pc.any(is_wrong).as_py():
            return pa.nulls(len(at), TEXT)
        text = f"its clock: {AT[self.kind]} is "
        times = [f"{text}{time:%Y-%m-%d %H:%M:%S}" if time else None for time in at.to_pylist()]
        return pc.if_else(is_wrong, pa.array(times, TEXT), pa.scalar(None, TEXT))


def _hours(at: pa.Array, problem: pa.Array, ids: pa.Array) -> dict[str, pa.Array]:
    """Return day and hour of the times; of rows with a problem those of the ids."""
    number = pc.divide(at.cast(pa.int64()), 1000 * HOUR_MS)
    if problem.null_count < len(problem):
        added = [min(int(each.partition("-")[0]), LATEST_MS) // HOUR_MS for each in ids.to_pylist()]
        number = pc.if_else(pc.is_null(problem), number, pa.array(added))
    alike = _plain(number).dictionary_encode()
    hours = [hour_at(each * HOUR_MS) for each in alike.dictionary.to_pylist()]
    parts = {"day": [hour[:10] for hour in hours], "hour": [hour[11:] for hour in hours]}
    return {name: pa.array(texts, TEXT).take(alike.indices) for name, texts in parts.items()}


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _kept(body: pa.Array, bodies: str) -> pa.Array:
    if bodies == "none":
        return pa.nulls(len(body), OCTETS)
    return body if bodies == "full" else pc.binary_slice(body, 0, int(bodies))
