"""Clean rows of the data source for bronze: redaction, fingerprints, implausible clocks, day and hour."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from services.analytics.cleaning.fingerprint import fingerprints, patterns
from services.analytics.cleaning.redaction import (
    redacted,
    redacted_attributes,
    redacted_fields,
    redacted_octets,
    redacted_problems,
)
from services.analytics.settings import Settings
from services.redis_stream.convert import LATEST_MS
from services.redis_stream.schema import FIELDS, OCTETS, TEXT, Kind

EARLIEST_MS = 946_684_800_000  # the year 2000
AT = {Kind.DEAD: "died", Kind.SAMPLES: "at"}  # the column that decides the hour
CLEANED = pa.struct(
    [
        ("fingerprint", TEXT),
        ("pattern", TEXT),
        ("error", TEXT),
        ("note", TEXT),
        ("body", OCTETS),
        ("attributes", OCTETS),
    ]
)


def cleaned(rows: DataFrame, kind: Kind, settings: Settings, now_ms: int) -> DataFrame:
    """Return rows of the data source with the columns of bronze but `dataset`.

    Args:
        rows: Rows with the columns of the kind; a stream or a batch.
        kind: Dead letters or samples.
        settings: What to redact and how much of bodies to keep.
        now_ms: The store's time; a record that is `clock_slack_s` ahead of it gets a `problem`.
    """
    latest_ms = now_ms + 1000 * settings.clock_slack_s
    if settings.redact:
        rows = _with_redacted_problems(rows, kind, settings)
    elif settings.bodies != "full" and kind is Kind.DEAD:
        rows = rows.withColumn("raw", _fields(settings, settings.bodies)("raw"))
    rows = rows.withColumn("problem", sql.coalesce("problem", _clock_problem(AT[kind], latest_ms)))
    if kind is Kind.DEAD:
        rows = _with_letters(rows, settings)
    hour = sql.when(sql.isnull("problem"), sql.col(AT[kind])).otherwise(id_time("id"))
    return rows.select(
        sql.date_format(hour, "yyyy-MM-dd").alias("day"), sql.date_format(hour, "HH").alias("hour"), "*"
    )


def _clock_problem(at: str, latest_ms: int) -> Column:
    """Return the problem of a time before the year 2000 or after `latest_ms`, else null."""
    is_right = sql.col(at).between(
        sql.timestamp_millis(sql.lit(EARLIEST_MS)), sql.timestamp_millis(sql.lit(latest_ms))
    )
    return sql.when(~is_right, sql.concat(sql.lit(f"its clock: {at} is "), sql.col(at).cast("string")))


def id_time(name: str) -> Column:
    """Return when an entry was added, by its id; the year 2200 for later ones: ids may have any time."""
    ms = sql.substring_index(name, "-", 1).cast("decimal(20,0)")
    return sql.timestamp_millis(sql.least(ms, sql.lit(LATEST_MS)).cast("bigint"))


def _with_redacted_problems(rows: DataFrame, kind: Kind, settings: Settings) -> DataFrame:
    redact = settings.redact

    def problems(values: pa.Array) -> pa.Array:
        return _plain(redacted_problems(values, redact))

    bodies = settings.bodies if kind is Kind.DEAD else "full"
    clean = _function(problems, TEXT)
    return rows.withColumns({"problem": clean("problem"), "raw": _fields(settings, bodies)("raw")})


def _fields(settings: Settings, bodies: str) -> Callable[..., Column]:
    redact = settings.redact

    def fields(raw: pa.Array) -> pa.Array:
        return _plain(redacted_fields(raw, redact, bodies))

    return _function(fields, FIELDS)


def _with_letters(rows: DataFrame, settings: Settings) -> DataFrame:
    redact, bodies = settings.redact, settings.bodies

    def clean(body: pa.Array, error: pa.Array, note: pa.Array, attributes: pa.Array) -> pa.Array:
        return letters(body, error, note, attributes, redact=redact, bodies=bodies)

    found = rows.withColumn("cleaned", _function(clean, CLEANED)("body", "error", "note", "attributes"))
    names = [field.name for field in CLEANED]
    return found.withColumns({name: sql.col(f"cleaned.{name}") for name in names}).drop("cleaned")


def letters(
    body: pa.Array,
    error: pa.Array,
    note: pa.Array,
    attributes: pa.Array,
    *,
    redact: tuple[str, ...],
    bodies: str,
) -> pa.Array:
    """Return the struct CLEANED: redacted columns, the body shortened to `bodies`, fingerprint and pattern."""
    body, error = redacted_octets(body, redact), redacted(error, redact)
    columns = [
        fingerprints(body),
        patterns(error),
        error,
        redacted(note, redact),
        _kept(body, bodies),
        redacted_attributes(attributes, redact),
    ]
    return pa.StructArray.from_arrays([_plain(each) for each in columns], fields=[*CLEANED])


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _kept(body: pa.Array, bodies: str) -> pa.Array:
    if bodies == "none":
        return pa.nulls(len(body), OCTETS)
    return body if bodies == "full" else pc.binary_slice(body, 0, int(bodies))


def _function(compute: Callable[..., pa.Array], result: pa.DataType) -> Callable[..., Column]:
    """Return a Spark function of whole Arrow columns."""
    # the stubs of PySpark demand a function type, of which PySpark warns
    made: Callable[..., Column] = arrow_udf(compute, from_arrow_type(result))  # type: ignore[call-overload]
    return made
