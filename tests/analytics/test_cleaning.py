"""Compare cleaned rows with plain Python: fingerprints, patterns, redaction, hours."""

from __future__ import annotations

import hashlib
import random
import re
from datetime import UTC, datetime
from typing import Any

import msgpack
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.cleaning.fingerprint import fingerprints, patterns
from services.analytics.cleaning.redaction import (
    redacted_attributes,
    redacted_fields,
    redacted_octets,
    trouble,
)
from services.analytics.cleaning.stray_octets import as_octets, as_text
from services.analytics.settings import Settings, SettingsError
from services.analytics.tables import BRONZE
from services.redis_stream.columns import Origin, batch
from services.redis_stream.schema import FIELDS, OCTETS, TEXT, Kind
from tests.redis_stream.streams import LETTER

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
def test_bodies_are_redacted_as_text_and_else_octet_by_octet_too(bodies: list[bytes | None]) -> None:
    wanted = ("[0-9]+z", "é", "€")  # the last is not in Latin-1

    def expected(body: bytes) -> bytes:
        return without(re.compile("[0-9]+z|é|€"), body)

    found = redacted_octets(pa.array(bodies, OCTETS), wanted).to_pylist()
    assert found == [None if body is None else expected(body) for body in bodies]


def without(secret: re.Pattern[str], body: bytes) -> bytes:
    """Return the body redacted as text; if parts are not UTF-8, then also octet by octet."""
    text = secret.sub("[redacted]", body.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return text if is_text(body) else secret.sub("[redacted]", text.decode("latin-1")).encode("latin-1")


@pytest.mark.parametrize("stray", ["тайна".encode()[:-1], b"\xff", "\U0010fffe".encode() + b"\xf4\x8f"])
def test_what_is_secret_is_found_beside_octets_that_are_no_text(stray: bytes) -> None:
    """Check bodies, attributes and unreadable entries; also patterns with a class only."""
    secret = "пароль: тайна €10".encode()
    for pattern in (r"пароль: \pL+", r"\p{Cyrillic}+: .{5}"):
        for value in (stray + secret, secret + stray, stray + secret + stray):
            hidden = value.replace("пароль: тайна".encode(), b"[redacted]")
            found = redacted_octets(pa.array([value, secret, None], OCTETS), (pattern,)).to_pylist()
            assert found == [hidden, "[redacted] €10".encode(), None]
            packed = pa.array([msgpack.packb({"a": value})], OCTETS)
            assert msgpack.unpackb(redacted_attributes(packed, (pattern,))[0].as_py()) == {"a": hidden}
            raw = pa.array([[("error", value)]], FIELDS)
            assert redacted_fields(raw, (pattern,), "full").to_pylist() == [[("error", hidden)]]


@given(st.one_of(st.binary(), st.text(st.characters(min_codepoint=0x10FF70)).map(str.encode)))
@example("\U0010ff80\U0010ffff".encode() + b"\xf4\x8f\xbf")
def test_any_octets_have_a_text_of_their_own(value: bytes) -> None:
    text = as_text(value)
    assert as_octets(text) == value
    assert text.encode().decode() == text


def is_text(body: bytes) -> bool:
    return body == body.decode("utf-8", "ignore").encode()


def test_fields_of_what_could_not_be_read_are_redacted_and_have_no_body() -> None:
    raw = pa.array([None, [("body", b"1z"), ("error", b"of 1z"), ("x", b"\xff1z")]], FIELDS)
    assert redacted_fields(raw, (), "full") == raw
    assert redacted_fields(raw, ("1z",), "none").to_pylist() == [
        None,
        [("error", b"of [redacted]"), ("x", b"\xff[redacted]")],
    ]
    assert redacted_fields(raw, (), "none").to_pylist()[1] == [("error", b"of 1z"), ("x", b"\xff1z")]


def test_names_of_fields_of_what_could_not_be_read_are_redacted() -> None:
    """Check names and values of fields; names that become equal are kept."""
    packed = msgpack.packb({"a": "ody"})
    fields = [("token=1z", b"a"), ("token=2z", b"b"), ("body", b"c2z"), ("attributes", packed)]
    raw = pa.array([fields], FIELDS)
    assert redacted_fields(raw, (r"token=\w+", "ody"), "2").to_pylist() == [
        [
            ("[redacted]", b"a"),
            ("[redacted]", b"b"),
            ("b[redacted]", b"c2"),
            ("attributes", msgpack.packb({"a": "[redacted]"})),
        ]
    ]


def clean(rows: pa.RecordBatch, **told: Any) -> list[dict[str, Any]]:
    """Return the cleaned rows of dead letters."""
    names = tuple(each.name for each in BRONZE[Kind.DEAD].columns)
    found: list[dict[str, Any]] = Cleaning(Kind.DEAD, names, "abc", NOW_MS, **told)(rows).to_pylist()
    return found


def test_bodies_of_what_could_not_be_read_are_as_long_as_others() -> None:
    """Check that bodies are cut after redaction, as patterns would miss a cut secret."""
    body = b"the secret of 1z"
    some = letters({"body": body, "died": "soon"}, {"body": b"tiny", "died": "soon"})
    for bodies, wanted in {"0": b"", "7": b"the sec", "13": b"the [redacted"}.items():
        told = {"bodies": bodies, "redact": ("secret of 1z",) if bodies == "13" else ()}
        kept = [dict(row["raw"])["body"] for row in clean(some, **told)]
        assert kept == [wanted, b"tiny"[: int(bodies)]]
    assert dict(clean(some, bodies="full")[0]["raw"])["body"] == body
    sample = [("body", body)]
    assert redacted_fields(pa.array([sample], FIELDS), (), "full").to_pylist() == [sample]


def test_attributes_are_redacted_as_bodies_are_and_kept_without_them() -> None:
    plain = {"priority": 3}
    secret = {
        "token": "sk-live-abc",
        "deep": [{"sk-live-key": b"\xff sk-live-def"}],
        "card": 4111111111111111,
    }
    hidden = {"token": "[redacted]", "deep": [{"[redacted]": b"\xff [redacted]"}], "card": "[redacted]"}
    told = {"redact": (r"sk-live-\w+", r"\b\d{16}\b")}
    some = letters(*({"attributes": msgpack.packb(each), "died": NOW_MS} for each in (plain, secret, plain)))
    for rows in (some, some.slice(1)):
        kept = [row["attributes"] for row in clean(rows, **told)]
        assert [msgpack.unpackb(each) for each in kept] == [plain, hidden, plain][-len(rows) :]
    bad = letters({"attributes": msgpack.packb(secret), "died": "soon"})
    assert "sk-live" not in str(clean(bad, **told))


LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), TEXTS, BODIES),
    st.builds(msgpack.ExtType, st.integers(0, 127), BODIES),
)
TREES = st.recursive(
    LEAVES, lambda some: st.one_of(st.lists(some, max_size=3), st.dictionaries(TEXTS, some, max_size=3))
)


def hidden(tree: Any) -> Any:
    """Return the attributes without digits and é; keys that become equal are kept."""
    match tree:
        case dict():
            return [(hidden(key), hidden(value)) for key, value in tree.items()]
        case list():
            return [hidden(each) for each in tree]
        case msgpack.ExtType():
            return msgpack.ExtType(tree.code, hidden(tree.data))
        case bytes():
            return without(SECRET, tree)
        case None | bool():
            return tree
        case _:
            told = SECRET.sub("[redacted]", str(tree))
            return told if told != str(tree) else tree


SECRET = re.compile("[0-9]+|é")


@given(st.lists(st.one_of(st.none(), TREES), max_size=6))
@example([{"1": "a", "2": "b"}])
def test_each_key_and_value_of_attributes_is_redacted(trees: list[Any]) -> None:
    packed = [None if tree is None else msgpack.packb(tree) for tree in trees]
    found = redacted_attributes(pa.array(packed, OCTETS), ("[0-9]+", "é")).to_pylist()
    told = [
        None if each is None else msgpack.unpackb(each, object_pairs_hook=list, strict_map_key=False)
        for each in found
    ]
    assert told == [hidden(tree) for tree in trees]


@given(st.lists(st.one_of(st.none(), TREES.map(msgpack.packb), st.binary(max_size=40)), max_size=6))
def test_attributes_without_what_is_secret_stay_as_they_are(packed: list[bytes | None]) -> None:
    """Check arbitrary octets: kept if they are MessagePack without secrets, otherwise redacted whole."""
    found = redacted_attributes(pa.array(packed, OCTETS), ("no such text",)).to_pylist()
    assert found == [
        each if each is None or is_packed(each) else msgpack.packb("[redacted]") for each in packed
    ]


def is_packed(octets: bytes) -> bool:
    unpacker = msgpack.Unpacker(
        unicode_errors="surrogateescape", strict_map_key=False, object_pairs_hook=list
    )
    unpacker.feed(octets)
    try:
        unpacker.unpack()
    except (ValueError, msgpack.OutOfData):
        return False
    return bool(unpacker.tell() == len(octets))


def test_attributes_may_be_nested_deeper_than_functions() -> None:
    deep, deeper = (b"\x91" * depth + msgpack.packb("1z") for depth in (1000, 100_000))
    found = redacted_attributes(pa.array([deep, deeper], OCTETS), ("1z",)).to_pylist()
    assert found == [b"\x91" * 1000 + msgpack.packb("[redacted]"), msgpack.packb("[redacted]")]


@pytest.mark.parametrize("pattern", ["", "(", "(?<=a)b", r"(a)\1"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    assert trouble(pattern)
    with pytest.raises(SettingsError, match="use the syntax of RE2"):
        Settings("redis://127.0.0.1", "/tmp", "r1", redact=("fine", pattern))


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
    rows = letters({"died": died}, {"died": NOW_MS - 5})
    wrong, right = (row["problem"] for row in clean(rows))
    assert right is None
    assert (wrong is None) == is_right
    if not is_right:
        at = datetime.fromtimestamp(died / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        assert wrong.startswith(f"its clock: died is {at}")


def test_each_row_is_in_the_hour_of_its_death_and_an_unreadable_one_in_that_of_its_id(
    chance: random.Random,
) -> None:
    times = [NOW_MS - chance.randrange(5 * 3_600_000) for _ in range(20)]
    rows = letters(*({"died": at if number % 3 else "soon"} for number, at in enumerate(times)))
    for number, row in enumerate(clean(rows)):
        at = times[number] if number % 3 else int(row["id"].split("-")[0])
        hour = datetime.fromtimestamp(at / 1000, UTC)
        assert (row["day"], row["hour"]) == (f"{hour:%Y-%m-%d}", f"{hour:%H}")
        assert (row["problem"] is None) == bool(number % 3)
