"""Convert pages of entries to record batches; unreadable entries become rows with a problem and their fields."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.redis_stream import convert
from services.redis_stream.convert import Problems
from services.redis_stream.layout import DEAD, SAMPLES, VERSION, Field
from services.redis_stream.schema import COLUMNS, FIELDS, OCTETS, TEXT, Kind, arrow_schema

Entry = list[Any]  # [id, [name, value, name, value, ...]]
WHOLE = -1
AS_WRITTEN = (b"v", b"kind")  # how samples begin


@dataclass(frozen=True, slots=True)
class Origin:
    """The stream of rows, and what is known of all of them before they are read."""

    kind: Kind
    stream: str
    domain: str = ""
    queue: str = ""
    qid: str = ""
    bodies: int = WHOLE  # octets of each body that are kept; 0: none, and it is null

    def known(self) -> dict[str, str]:
        """Return the columns that are the same in all rows."""
        if self.kind is Kind.DEAD:
            return {"stream": self.stream, "domain": self.domain, "queue": self.queue, "qid": self.qid}
        return {"stream": self.stream, "domain": self.domain}


def batch(origin: Origin, page: Sequence[Entry]) -> pa.RecordBatch:
    """Return one row for each entry, in order."""
    if origin.kind is Kind.ENTRIES:
        return _entries(origin, page)
    groups = _alike(origin.kind, page)
    if len(groups) == 1:
        return _group(origin, page, next(iter(groups)))
    made = [_group(origin, [page[row] for row in rows], key) for key, rows in groups.items()]
    order = pc.array_sort_indices(pa.array([row for rows in groups.values() for row in rows]))
    return pa.Table.from_batches(made).combine_chunks().take(order).to_batches()[0]


Alike = tuple[bytes, ...]  # names of fields; for samples, preceded by version and kind


def _alike(kind: Kind, page: Sequence[Entry]) -> dict[Alike, list[int]]:
    """Return rows by their fields, to be read together. A row like the one before needs no new key."""
    groups: dict[Alike, list[int]] = defaultdict(list)
    names: list[bytes] = []
    rows: list[int] = []
    if kind is Kind.DEAD:
        for row, (_, fields) in enumerate(page):
            if names != (names := fields[::2]) or not rows:
                rows = groups[tuple(names)]
            rows.append(row)
        return groups
    # version and kind of the previous entry, if they are where edges write them
    begin: list[bytes] | None = None
    for row, (_, fields) in enumerate(page):
        if names != (names := fields[::2]) or begin != fields[:4]:
            begin = fields[:4] if tuple(names[:2]) == AS_WRITTEN else None
            rows = groups[_sample_key(fields, names)]
        rows.append(row)
    return groups


def _sample_key(fields: list[bytes], names: list[bytes]) -> Alike:
    if tuple(names[:2]) == AS_WRITTEN:
        return (fields[1], fields[3], *names)
    told = dict(zip(names, fields[1::2], strict=True))
    return (told.get(b"v", b""), told.get(b"kind", b""), *names)


def _layout(kind: Kind, key: Alike) -> tuple[Sequence[Field], Alike, str]:
    """Return the fields of such entries, their names, and why they cannot be read at all."""
    if kind is Kind.DEAD:
        return DEAD, key, _trouble(DEAD, key)
    version, sample, *rest = key
    names = tuple(rest)
    if version != VERSION:
        return (), names, f"v is {convert.shown(version)}: this program reads version 1"
    if sample not in SAMPLES:
        return (), names, f"kind is {convert.shown(sample)}: not one of {_known_samples()}"
    return SAMPLES[sample], names, _twice(AS_WRITTEN, names) or _trouble(SAMPLES[sample], names)


def _trouble(layout: Sequence[Field], names: Alike) -> str:
    missing = [each.key.decode() for each in layout if each.needed and each.key not in names]
    return f"it has no {', '.join(missing)}" if missing else _twice([each.key for each in layout], names)


def _twice(known: Sequence[bytes], names: Alike) -> str:
    """Return an error for names that occur twice, as the intended value is unknown."""
    if len(set(names)) == len(names):
        return ""
    found = [name.decode() for name in known if names.count(name) > 1]
    return f"it has {', '.join(found)} twice" if found else ""


def _known_samples() -> str:
    return ", ".join(kind.decode() for kind in SAMPLES)


def _group(origin: Origin, entries: Sequence[Entry], key: Alike) -> pa.RecordBatch:
    layout, names, trouble = _layout(origin.kind, key)
    problems = Problems(dict.fromkeys(range(len(entries)), trouble) if trouble else {})
    ids = pa.array([entry[0] for entry in entries], OCTETS).cast(TEXT)
    columns = {} if trouble else _columns(layout, names, entries, problems)
    if origin.kind is Kind.SAMPLES and not trouble:
        columns["kind"] = pa.repeat(key[1].decode(), len(entries))
        columns["at"] = _times(ids, problems)
    elif not trouble:
        _finish_dead(origin, columns)
    return _assemble(origin, ids, columns, entries, problems)


def _columns(
    layout: Sequence[Field], names: Alike, entries: Sequence[Entry], problems: Problems
) -> dict[str, pa.Array]:
    values = dict(zip(names, zip(*[fields[1::2] for _, fields in entries], strict=True), strict=True))
    found = {}
    for each in layout:
        if each.key in values:
            found[each.column] = each.convert(each.column, values[each.key], problems)
        elif each.default is not None:
            found[each.column] = each.convert(each.column, [each.default] * len(entries), problems)
    return found


def _times(ids: pa.Array, problems: Problems) -> pa.Array:
    times = convert.id_times(ids)
    if times.null_count:
        for row in pc.indices_nonzero(pc.is_null(times)).to_pylist():
            problems.add(row, f"its id {ids[row].as_py()} is not a time before the year 2200")
    return times


def _finish_dead(origin: Origin, columns: dict[str, pa.Array]) -> None:
    columns["edge"] = pc.list_element(pc.split_pattern(columns["origin"], " ", max_splits=1), 0)
    columns["size"] = pc.binary_length(columns["body"]).cast(pa.int64())
    if origin.bodies == 0:
        del columns["body"]
    elif origin.bodies != WHOLE:
        columns["body"] = pc.binary_slice(columns["body"], 0, origin.bodies)


def _assemble(
    origin: Origin,
    ids: pa.Array,
    columns: Mapping[str, pa.Array],
    entries: Sequence[Entry],
    problems: Problems,
) -> pa.RecordBatch:
    """Return all columns in order; rows with a problem have only what is known of them."""
    number, known = len(ids), origin.known()
    is_well = None
    extra: dict[str, pa.Array] = {}
    if problems.found:
        is_well = pa.array([row not in problems.found for row in range(number)])
        extra["problem"] = pa.array([problems.found.get(row) for row in range(number)], TEXT)
        extra["raw"] = pa.array(
            [_raw(fields) if row in problems.found else None for row, (_, fields) in enumerate(entries)],
            FIELDS,
        )
    arrays = []
    for column in COLUMNS[origin.kind]:
        if column.name == "id":
            arrays.append(ids)
        elif column.name in known:
            arrays.append(pa.repeat(known[column.name], number))
        elif column.name in extra:
            arrays.append(extra[column.name])
        elif column.name not in columns:
            arrays.append(pa.nulls(number, column.type))
        elif is_well is None:
            arrays.append(columns[column.name])
        else:
            arrays.append(_only(is_well, columns[column.name]))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(origin.kind))


def _only(is_well: pa.Array, column: pa.Array) -> pa.Array:
    places = pc.if_else(is_well, pa.array(range(len(column)), pa.int64()), pa.scalar(None, pa.int64()))
    return column.take(places)


def _raw(fields: list[bytes]) -> list[tuple[str, bytes]]:
    """Return the fields as a map; of a repeated name the last value is kept."""
    found = {fields[i].decode("utf-8", "backslashreplace"): fields[i + 1] for i in range(0, len(fields), 2)}
    return list(found.items())


def _entries(origin: Origin, page: Sequence[Entry]) -> pa.RecordBatch:
    ids = pa.array([entry[0] for entry in page], OCTETS).cast(TEXT)
    arrays = [
        pa.repeat(origin.stream, len(page)),
        ids,
        convert.id_times(ids),
        pa.array([_raw(fields) for _, fields in page], FIELDS),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(Kind.ENTRIES))
