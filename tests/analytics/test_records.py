"""Records as the archive keeps them: fingerprints, patterns, redaction and hours, compared with plain Python."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.analytics.columns import Origin, batch
from services.analytics.fingerprint import fingerprints, patterns
from services.analytics.records import archive_schema, archived, by_hour
from services.analytics.redaction import redacted_fields, redacted_octets, trouble
from services.analytics.schema import FIELDS, OCTETS, TEXT, Kind
from services.analytics.settings import Settings, SettingsError, Shape
from tests.analytics.streams import LETTER

NOW_MS = 1_800_000_000_000
ORIGIN = Origin(Kind.DEAD, "ps:{main}:4:d", "main", "orders", "4")
VARIABLE = re.compile(r"[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*|[0-9]+")
SPACE = re.compile(r"[ \t\n\x0b\f\r]+")
ALPHABET = "09afAFgz-_ \t\n\x0b\x85\xa0é€"
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=60)
BODIES = st.one_of(TEXTS.map(str.encode), st.binary(max_size=60))


def normalised(text: str) -> str:
    return SPACE.sub(" ", VARIABLE.sub("0", text))


@given(st.lists(st.one_of(st.none(), BODIES), max_size=8))
def test_fingerprints_are_of_the_normalised_beginning(bodies: list[bytes | None]) -> None:
    def expected(body: bytes) -> str:
        return hashlib.sha256(normalised(body[:4096].decode("latin-1")).encode()).hexdigest()[:16]

    found = fingerprints(pa.array(bodies, OCTETS)).to_pylist()
    assert found == [None if body is None else expected(body) for body in bodies]


def test_what_is_behind_4096_octets_makes_no_difference() -> None:
    one, other, third = fingerprints(
        pa.array([b"x" * 4096 + b"a", b"x" * 4096 + b"b", b"x" * 4095])
    ).to_pylist()
    assert one == other != third


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=8))
def test_patterns_are_normalised_errors(errors: list[str | None]) -> None:
    found = patterns(pa.array(errors, TEXT)).to_pylist()
    assert found == [None if error is None else normalised(error)[:200] for error in errors]


@given(st.lists(st.one_of(st.none(), BODIES), max_size=8))
def test_bodies_are_redacted_as_text_or_else_octet_by_octet(bodies: list[bytes | None]) -> None:
    wanted = ("[0-9]+z", "é", "€")  # the last is no character of Latin-1

    def expected(body: bytes) -> bytes:
        coding = "utf-8" if is_text(body) else "latin-1"
        return re.sub("[0-9]+z|é|€", "[redacted]", body.decode(coding)).encode(coding)

    found = redacted_octets(pa.array(bodies, OCTETS), wanted).to_pylist()
    assert found == [None if body is None else expected(body) for body in bodies]


def is_text(body: bytes) -> bool:
    return body == body.decode("utf-8", "ignore").encode()


def test_fields_of_what_could_not_be_read_are_redacted_and_have_no_body() -> None:
    raw = pa.array([None, [("body", b"1z"), ("error", b"of 1z"), ("x", b"\xff1z")]], FIELDS)
    assert redacted_fields(raw, (), has_bodies=True) == raw
    assert redacted_fields(raw, ("1z",), has_bodies=False).to_pylist() == [
        None,
        [("error", b"of [redacted]"), ("x", b"\xff[redacted]")],
    ]
    assert redacted_fields(raw, (), has_bodies=False).to_pylist()[1] == [
        ("error", b"of 1z"),
        ("x", b"\xff1z"),
    ]


@pytest.mark.parametrize("pattern", ["", "(", "(?<=a)b", r"(a)\1"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    assert trouble(pattern)
    with pytest.raises(SettingsError, match="patterns are those of RE2"):
        Settings("redis://127.0.0.1", "/tmp", "r1", Shape(redact=("fine", pattern)))


def letters(*changed: dict[str, Any]) -> pa.RecordBatch:
    entries = []
    for number, each in enumerate(changed):
        fields = {**LETTER, **each}
        words = [
            str(word).encode() if not isinstance(word, bytes) else word
            for pair in fields.items()
            for word in pair
        ]
        entries.append([f"{number + 1}-0".encode(), words])
    return batch(ORIGIN, entries)


@pytest.mark.parametrize(
    ("died", "is_right"),
    [(NOW_MS, True), (NOW_MS + 1, False), (946_684_800_000, True), (946_684_799_999, False), (0, False)],
)
def test_a_clock_that_cannot_be_right_is_a_problem(died: int, is_right: bool) -> None:
    rows = archived(letters({"died": died}, {"died": NOW_MS - 5}), Kind.DEAD, Shape(), NOW_MS)
    assert rows.schema == archive_schema(Kind.DEAD)
    wrong, right = rows["problem"].to_pylist()
    assert right is None
    assert (wrong is None) == is_right
    if not is_right:
        at = datetime.fromtimestamp(died / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        assert wrong.startswith(f"its clock: died is {at}")


@given(st.lists(st.tuples(st.integers(0, 5 * 3600), st.booleans()), min_size=1, max_size=12))
def test_each_row_is_in_its_hour_in_order(rows: list[tuple[int, bool]]) -> None:
    times = [NOW_MS - 1000 * seconds for seconds, _ in rows]
    made = archived(
        letters(*({"died": at if well else "soon"} for at, (_, well) in zip(times, rows, strict=True))),
        Kind.DEAD,
        Shape(),
        NOW_MS,
    )
    expected: dict[str, list[str]] = {}
    for number, (at, (_, well)) in enumerate(zip(times, rows, strict=True)):
        hour = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H") if well else ""
        expected.setdefault(hour, []).append(f"{number + 1}-0")
    found = by_hour(pa.Table.from_batches([made]), Kind.DEAD)
    assert [(hour, part["id"].to_pylist()) for hour, part in found] == sorted(expected.items())
