"""Compare pages of arbitrary entries as rows with a plain reader, entry by entry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.redis_stream import layout
from services.redis_stream.columns import Origin, batch
from services.redis_stream.schema import COLUMNS, Kind
from tests.redis_stream.streams import DEPTH, EDGE, LETTER, QUEUE

LATEST_MS = 7_258_118_400_000
COUNTS = (
    "n ms in in_octets out out_octets acked returned rejected refused_puts connections opened received_octets"
)
COUNTS += " sent_octets len leased oldest_ms dead added delivered fenced dead_all expired duplicates redriven purged"
COUNTS += " dead_trimmed bytes_in bytes_out age_ms"
READ: dict[str, str] = {
    **dict.fromkeys(COUNTS.split(), "count"),
    **dict.fromkeys(("acquired", "failed"), "small"),
    **dict.fromkeys(("enqueued", "died"), "time"),
    **dict.fromkeys(("first", "last"), "never"),
    **dict.fromkeys(("put", "wait"), "histogram"),
    "refused": "reasons",
    **dict.fromkeys(("body", "attributes"), "octets"),
}
SAMPLES = {"queue": QUEUE, "edge": EDGE, "depth": DEPTH}
OPTIONAL = {"attributes": None, "note": b"", "redriven": b"0"}
MAY_MISS = {Kind.DEAD: {*OPTIONAL}, Kind.SAMPLES: {"refused_puts", "age_ms"}}
DEAD_NAMES = [name for name in LETTER if name not in ("queue", "entry")]
ORIGINS = {
    Kind.DEAD: Origin(Kind.DEAD, "ps:{main}:4:d", "main", "orders", "4"),
    Kind.SAMPLES: Origin(Kind.SAMPLES, "ps:{main}:samples", "main"),
    Kind.ENTRIES: Origin(Kind.ENTRIES, "any"),
}


class Wrong(Exception):
    pass


def words(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def at(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def number(value: bytes, most: int = 2**40) -> int:
    if not value or set(value) - set(b"0123456789") or len(value.lstrip(b"0")) > 19:
        raise Wrong
    found = int(value.lstrip(b"0") or b"0")
    if found > most:
        raise Wrong
    return found


def reasons(value: bytes) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for part in value.split(b",") if value else []:
        name, _, count = part.rpartition(b"=")
        if not name:
            raise Wrong
        found[words(name)] = found.get(words(name), 0) + number(count)
        if sum(found.values()) > 2**40:
            raise Wrong
    return sorted(found.items())


def histogram(value: bytes) -> list[int]:
    parts = value.split(b",")
    if len(parts) != 16:
        raise Wrong
    return [number(part) for part in parts]


def plain_value(name: str, value: bytes, kind: Kind, most: int) -> Any:
    how = "small" if (kind, name) == (Kind.DEAD, "redriven") else READ.get(name, "text")
    match how:
        case "count":
            return number(value, most)
        case "small":
            return number(value, 2**31 - 1)
        case "time":
            return at(number(value, LATEST_MS))
        case "never":
            ms = number(value, LATEST_MS)
            return at(ms) if ms else None
        case "histogram":
            return histogram(value)
        case "reasons":
            return reasons(value)
        case "octets":
            return value
    return words(value)


def plain_row(kind: Kind, identifier: bytes, fields: list[bytes], bodies: int) -> dict[str, Any]:
    """Return one row, computed in the simplest way."""
    row: dict[str, Any] = dict.fromkeys(column.name for column in COLUMNS[kind])
    known = {name: value for name, value in ORIGINS[kind].known().items() if name in row}
    row |= known | {"id": identifier.decode()}
    told = dict(zip(fields[::2], fields[1::2], strict=True))
    raw = [(words(name), value) for name, value in told.items()]
    ms = int(identifier.partition(b"-")[0])
    if kind is Kind.ENTRIES:
        return row | {
            "stream": "any",
            "at": at(ms) if ms <= LATEST_MS else None,
            "fields": list(dict(raw).items()),
        }
    try:
        return row | plain_fields(kind, told, fields[::2], ms, bodies)
    except Wrong:
        return row | {"problem": "...", "raw": list(dict(raw).items())}


def plain_fields(
    kind: Kind, told: dict[bytes, bytes], names: list[bytes], ms: int, bodies: int
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kind is Kind.SAMPLES:
        sample = told.get(b"kind", b"").decode("latin-1")
        if told.get(b"v") != b"1" or sample not in SAMPLES or ms > LATEST_MS:
            raise Wrong
        wanted = list(SAMPLES[sample])
    else:
        wanted = DEAD_NAMES + list(OPTIONAL)
    for name in wanted:
        if names.count(name.encode()) > 1:
            raise Wrong
        value = told.get(name.encode(), OPTIONAL.get(name) if kind is Kind.DEAD else None)
        if value is None and name not in MAY_MISS[kind]:
            raise Wrong
        most = 2**53 if told.get(b"kind") == b"depth" else 2**40
        found[name] = value if value is None else plain_value(name, value, kind, most)
    if kind is Kind.SAMPLES:
        del found["v"]
        return found | {"at": at(ms)}
    body = found["body"]
    shown = None if bodies == 0 else body if bodies < 0 else body[:bodies]
    return found | {"edge": found["origin"].split(" ")[0], "size": len(body), "body": shown}


# entries of any kind

ODD = [
    b"",
    b"-1",
    b"-0",
    b"0x10",
    b" 1",
    b"1.5",
    b"99999999999999999999",
    b"9" * 5000,
    b"\xff\xfe",
    b"a=1,b=2",
    b"0",
]
ODD += [
    b"2147483648",
    b"7258118400001",
    b"1099511627777",
    b"9007199254740993",
    b"a=1099511627776,b=1",
    b"0007",
    b"full=1,full=2",
    b"full",
    b"1,2",
    b",".join([b"1"] * 16),
    b"2",
    b"x y",
]
values = st.one_of(st.sampled_from(ODD), st.binary(max_size=6))
ids = st.builds(
    lambda ms, n: b"%d-%d" % (ms, n),
    st.one_of(st.integers(1, 2**41), st.integers(0, 2**64 - 1)),
    st.integers(0, 2**64 - 1),
)


@st.composite
def entries(draw: st.DrawFn, base: dict[str, str]) -> list[Any]:
    """Return valid entries, mostly with an error: other values; missing, repeated, unknown or moved fields."""
    pairs = [(name.encode(), value.encode()) for name, value in base.items()]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(0, len(pairs) - 1)))
        match draw(st.sampled_from(["value", "drop", "double", "unknown", "move", "more"])):
            case "value" if pairs:
                pairs[place] = pairs[place][0], draw(values)
            case "drop" if pairs:
                del pairs[place]
            case "double" if pairs:
                pairs.insert(draw(st.integers(0, len(pairs))), (pairs[place][0], draw(values)))
            case "unknown":
                pairs.insert(place, (draw(st.binary(max_size=3)), draw(values)))
            case "move" if pairs:
                pairs.append(pairs.pop(place))
            case "more":
                pairs.append((draw(st.sampled_from([b"note", b"redriven", b"attributes"])), draw(values)))
    return [draw(ids), [word for pair in pairs or [(b"x", b"")] for word in pair]]


def rows_of(kind: Kind, page: list[Any], bodies: int = -1) -> list[dict[str, Any]]:
    origin = ORIGINS[kind]
    made = batch(Origin(origin.kind, origin.stream, origin.domain, origin.queue, origin.qid, bodies), page)
    made.validate(full=True)
    rows = made.to_pylist()
    for row in rows:
        if row.get("problem"):
            row["problem"] = "..."
    return rows


@given(st.lists(entries(LETTER), min_size=1, max_size=6), st.sampled_from([-1, 0, 1, 100]))
def test_dead_letters_as_a_plain_reader_has_them(page: list[Any], bodies: int) -> None:
    assert rows_of(Kind.DEAD, page, bodies) == [plain_row(Kind.DEAD, *entry, bodies) for entry in page]


def test_kinds_that_stand_further_behind_are_told_apart() -> None:
    """Check fields in any order: the kind may be the last one (docs/store.md, "Samples")."""
    rest = {name: value for name, value in EDGE.items() if name != "kind"}
    page: list[Any] = [
        [b"%d-0" % number, [word.encode() for pair in (rest | {"kind": kind}).items() for word in pair]]
        for number, kind in enumerate(("edge", "", "queue", "edge"), 1)
    ]
    assert rows_of(Kind.SAMPLES, page) == [plain_row(Kind.SAMPLES, *entry, -1) for entry in page]
    assert [row["kind"] for row in rows_of(Kind.SAMPLES, page)] == ["edge", None, None, "edge"]


@given(st.lists(st.one_of(entries(QUEUE), entries(EDGE), entries(DEPTH)), min_size=1, max_size=6))
def test_samples_as_a_plain_reader_has_them(page: list[Any]) -> None:
    assert rows_of(Kind.SAMPLES, page) == [plain_row(Kind.SAMPLES, *entry, -1) for entry in page]


@given(st.lists(entries(EDGE), min_size=1, max_size=6))
def test_entries_as_a_plain_reader_has_them(page: list[Any]) -> None:
    assert rows_of(Kind.ENTRIES, page) == [plain_row(Kind.ENTRIES, *entry, -1) for entry in page]


@pytest.mark.parametrize("sample", [QUEUE, EDGE, DEPTH])
def test_what_is_well_is_read_whole(sample: dict[str, str]) -> None:
    (row,) = rows_of(Kind.SAMPLES, [[b"1700000000000-0", [w.encode() for p in sample.items() for w in p]]])
    assert row["problem"] is row["raw"] is None
    assert all(row[name] is not None for name in sample if name != "v")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"v": "2"}, "v is '2': this program reads version 1"),
        ({"kind": "other"}, "kind is 'other': not one of queue, edge, depth"),
        ({"in": None, "put": None}, "it has no in, put"),
        ({"ms": "soon"}, "ms is 'soon': not a number from 0 to 1099511627776"),
    ],
)
def test_a_problem_is_told_in_words(change: dict[str, str | None], why: str) -> None:
    fields = [
        w.encode() for name, value in (QUEUE | change).items() if value is not None for w in (name, value)
    ]
    (row,) = batch(ORIGINS[Kind.SAMPLES], [[b"1-0", fields]]).to_pylist()
    assert row["problem"] == why
    assert dict(row["raw"])["process"] == b"tmq-1f"


def test_a_field_that_is_there_twice_is_a_problem() -> None:
    fields = [w.encode() for p in LETTER.items() for w in p] + [b"body", b"y"]
    (row,) = batch(ORIGINS[Kind.DEAD], [[b"1-0", fields]]).to_pylist()
    assert row["problem"] == "it has body twice"


def test_every_field_of_a_layout_is_a_column() -> None:
    for kind, layouts in ((Kind.DEAD, [layout.DEAD]), (Kind.SAMPLES, layout.SAMPLES.values())):
        names = {column.name for column in COLUMNS[kind]}
        assert all(field.column in names for fields in layouts for field in fields)
