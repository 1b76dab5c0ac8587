"""Prepare records for the archive: fingerprints, redaction, and the hour of each."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.fingerprint import fingerprints, patterns
from services.analytics.redaction import (
    redacted,
    redacted_attributes,
    redacted_fields,
    redacted_octets,
    redacted_problems,
)
from services.analytics.settings import Shape
from services.redis_stream.schema import OCTETS, TEXT, TIME, Kind, arrow_schema

EARLIEST_MS = 946_684_800_000  # the year 2000
HOUR = "%Y-%m-%dT%H"
AT = {Kind.DEAD: "died", Kind.SAMPLES: "at"}  # the column that decides the hour


def archive_schema(kind: Kind) -> pa.Schema:
    """Return the columns of the archive: those of the data source and those that the job adds."""
    schema = arrow_schema(kind)
    if kind is Kind.DEAD:
        return schema.append(pa.field("fingerprint", TEXT)).append(pa.field("pattern", TEXT))
    return schema


def archived(rows: pa.RecordBatch, kind: Kind, shape: Shape, latest_ms: int) -> pa.RecordBatch:
    """Return rows with the archive's columns. An implausible time is a problem of its row."""
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns["problem"] = _problems(columns["problem"], columns[AT[kind]], AT[kind], latest_ms)
    columns["problem"] = redacted_problems(columns["problem"], shape.redact)
    bodies = shape.bodies if kind is Kind.DEAD else "full"
    columns["raw"] = redacted_fields(columns["raw"], shape.redact, bodies)
    if kind is Kind.DEAD:
        columns |= _dead_letters(columns, shape)
    schema = archive_schema(kind)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _problems(problem: pa.Array, at: pa.Array, name: str, latest_ms: int) -> pa.Array:
    bounds = pa.array([EARLIEST_MS * 1000, latest_ms * 1000]).cast(TIME)
    is_right = pc.and_(pc.greater_equal(at, bounds[0]), pc.less_equal(at, bounds[1]))
    if pc.all(pc.fill_null(is_right, False)).as_py():
        return problem
    text = pc.binary_join_element_wise(f"its clock: {name} is", at.cast(TEXT), " ")
    return pc.coalesce(problem, pc.if_else(is_right, pa.scalar(None, TEXT), text))


def _dead_letters(columns: dict[str, pa.Array], shape: Shape) -> dict[str, pa.Array]:
    """Return fingerprint and pattern; and redacted texts, attributes and bodies, shortened as configured."""
    body = redacted_octets(columns["body"], shape.redact)
    error = redacted(columns["error"], shape.redact)
    return {
        "fingerprint": fingerprints(body),
        "pattern": patterns(error),
        "error": error,
        "note": redacted(columns["note"], shape.redact),
        "body": _kept(body, shape.bodies),
        "attributes": redacted_attributes(columns["attributes"], shape.redact),
    }


def _kept(body: pa.Array, bodies: str) -> pa.Array:
    if bodies == "none":
        return pa.nulls(len(body), OCTETS)
    return body if bodies == "full" else pc.binary_slice(body, 0, int(bodies))


def by_hour(rows: pa.Table, kind: Kind) -> list[tuple[str, pa.Table]]:
    """Return rows by hour 'YYYY-MM-DDTHH', in order of hours and arrival; '' has those with a problem."""
    is_well = pc.is_null(rows["problem"])
    hours = pc.if_else(is_well, pc.floor_temporal(rows[AT[kind]], unit="hour"), pa.scalar(None, TIME))
    counted = pc.value_counts(hours)
    found = dict(zip(_names(counted.field("values")), counted.field("counts").to_pylist(), strict=True))
    if len(found) == 1:
        return [(name, rows) for name in found]
    order, begin = pc.array_sort_indices(hours.combine_chunks(), null_placement="at_start"), 0
    parts = []
    for name in sorted(found):
        parts.append((name, rows.take(order.slice(begin, found[name]))))
        begin += found[name]
    return parts


def _names(hours: pa.Array) -> list[str]:
    return list(pc.fill_null(pc.strftime(hours, HOUR), "").to_pylist())
