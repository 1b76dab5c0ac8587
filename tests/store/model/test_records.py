"""Records: the format of messages in entries (services/store/model/records.py, lua/schema.lua)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.store.model import records
from services.store.model.records import ENTRY_BYTES, MAX_LENGTH, PER_ENTRY

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.text(max_size=20)
    | st.binary(max_size=20)
)
attributes = st.dictionaries(st.text(max_size=10), scalars | st.lists(scalars, max_size=3), max_size=5)
messages = st.lists(st.tuples(st.binary(max_size=300), attributes), min_size=1, max_size=PER_ENTRY)
runs = st.lists(st.sampled_from((0, 1, 20, 96, 124, 1000, 4092, 4093, 9000)), min_size=1, max_size=120)


@given(st.binary(max_size=300), attributes)
def test_content_round_trips(body: bytes, given_attributes: dict[str, object]) -> None:
    record = records.encode(body, given_attributes)
    content = records.decode(record)
    assert records.body_length(record) == len(body)
    assert (content.body, dict(content.attributes)) == (body, given_attributes)


@given(st.binary(max_size=300))
def test_record_without_attributes_has_the_format_of_tmq(body: bytes) -> None:
    assert records.encode(body) == len(body).to_bytes(4, "big") + body


@given(messages)
def test_entry_is_split_into_its_records(contents: list[tuple[bytes, dict[str, object]]]) -> None:
    made = [records.encode(*content) for content in contents]
    blob = b"".join(made)
    assert records.split(blob, len(made)) == made
    for count in range(len(made) + 1):
        assert records.cut(blob, count) == sum(map(len, made[:count]))


@given(messages)
def test_plain_omits_attributes(contents: list[tuple[bytes, dict[str, object]]]) -> None:
    blob = b"".join(records.encode(*content) for content in contents)
    assert records.plain(blob, len(contents)) == b"".join(records.encode(body) for body, _ in contents)


@given(runs)
@example([96] * PER_ENTRY)
@example([ENTRY_BYTES - 4])
@example([ENTRY_BYTES - 3, 0])
@example([0] * (PER_ENTRY + 1))
def test_packed_entries_keep_order_and_bounds(sizes: list[int]) -> None:
    run = [records.encode(bytes([i % 256]) * size) for i, size in enumerate(sizes)]
    entries = records.pack(run)
    assert b"".join(blob for _, _, blob in entries) == b"".join(run)
    assert sum(count for count, _, _ in entries) == len(run)
    for count, size, blob in entries:
        assert 1 <= count <= PER_ENTRY
        assert size == len(blob) - 4 * count
        assert len(blob) <= ENTRY_BYTES or count == 1


@given(runs)
def test_entries_are_filled(sizes: list[int]) -> None:
    run = [records.encode(b"x" * size) for size in sizes]
    entries = records.pack(run)
    first = 0
    for count, _, blob in entries[:-1]:
        first += count
        assert count == PER_ENTRY or len(blob) + len(run[first]) > ENTRY_BYTES


def test_record_longer_than_the_maximum_is_refused() -> None:
    longest = records.encode(b"x" * MAX_LENGTH)
    assert len(records.decode(longest).body) == MAX_LENGTH
    with pytest.raises(ValueError, match="at most 16777215 octets"):
        records.encode(b"x" * (MAX_LENGTH + 1))
    with pytest.raises(ValueError, match="more than a record can hold"):
        records.encode(b"x" * MAX_LENGTH, {"a": 1})
    with pytest.raises(ValueError, match="more than a record can hold"):
        records.encode(b"", {"a": "x" * 0x10000})


def check_damaged(octets: bytes) -> None:
    """Check that damaged octets give a content or a ValueError."""
    try:
        content = records.decode(octets)
    except ValueError:
        return
    assert isinstance(content.attributes, dict)


@given(st.binary(max_size=40))
@example(b"\x01\x00\x00\x02\x00\x00")  # attributes of no octets
@example(b"\x01\x00\x00\x03\x00\x01\x05")  # attributes that are a number
@example(b"\x01\x00\x00\x04\x00\x02\x81\x90")  # a map with an array for its key
@example(b"\x01\x00\x00\x01\x00")
def test_damaged_records_raise_value_error(octets: bytes) -> None:
    check_damaged(octets)


@given(messages, st.data())
def test_record_with_one_changed_octet_decodes_or_raises_value_error(
    contents: list[tuple[bytes, dict[str, object]]], data: st.DataObject
) -> None:
    record = bytearray(records.encode(*contents[0]))
    record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    check_damaged(bytes(record))
