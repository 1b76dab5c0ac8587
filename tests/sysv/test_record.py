"""Test that a damaged journal is never read as another message (docs/sysv.md 3.2, 3.7)."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sysv.record import (
    BODY_AT,
    KERNEL_LONG,
    MAGIC,
    MTYPE_AT,
    RECEIPT_AT,
    STRUCK,
    STRUCK_AT,
    UNSEEN,
    Damaged,
    Plan,
    Record,
    encode_plan,
    encode_receipt,
    encode_record,
    parse,
)
from services.sysv.settings import Format

JOURNAL = "00112233445566778899aabbccddeeff"
ROOM = 64  # octets for bodies

records = st.builds(
    Record,
    journal=st.binary(min_size=16, max_size=16).map(bytes.hex),
    number=st.integers(1, (1 << 64) - 1),
    format=st.sampled_from(Format),
    queue=st.text(max_size=60),
    mtype=st.integers(1, (1 << 63) - 1),
    body=st.binary(max_size=ROOM),
)


def planned(record: Record, *, seen: bool = False) -> bytearray:
    """Return a record before `msgrcv`."""
    taken = KERNEL_LONG.pack(record.mtype) + record.body
    peeked = (len(record.body), crc32(taken)) if seen else (UNSEEN, 0)
    plan = Plan(record.journal, record.number, record.format, record.queue, *peeked)
    return bytearray(encode_plan(plan) + bytes(ROOM))


def taken(record: Record, *, seen: bool = False) -> bytearray:
    """Return a record after `msgrcv`, before the receipt."""
    data = planned(record, seen=seen)
    data[MTYPE_AT : BODY_AT + len(record.body)] = KERNEL_LONG.pack(record.mtype) + record.body
    return data


def live(record: Record) -> bytearray:
    data = taken(record)
    data[RECEIPT_AT:STRUCK_AT] = encode_receipt(data, len(record.body))
    assert data.startswith(encode_record(record))
    return data


def struck(record: Record) -> bytearray:
    data = live(record)
    data[STRUCK_AT:MTYPE_AT] = STRUCK
    return data


@given(records)
def test_simulation_reaches_all_states(record: Record) -> None:
    assert parse(bytes(planned(record))) is None
    assert parse(bytes(live(record))) == record
    assert parse(bytes(struck(record))) is None


@given(records)
def test_kill_after_msgrcv_loses_nothing(record: Record) -> None:
    """Check that the length is known from peeking at the message (3.2)."""
    assert parse(bytes(taken(record, seen=True))) == record


@given(records)
def test_message_of_unknown_length_is_damaged(record: Record) -> None:
    """Check that a message is damaged if it was not peeked at, or another process took the one that was (3.7)."""
    with pytest.raises(Damaged):
        parse(bytes(taken(record)))
    data = taken(record, seen=True)
    data[MTYPE_AT] ^= 1
    if any(data[MTYPE_AT:BODY_AT]):
        with pytest.raises(Damaged):
            parse(bytes(data))


@given(records, st.data())
def test_truncated_file_holds_the_message_or_is_damaged(record: Record, data: st.DataObject) -> None:
    whole = bytes(live(record))
    end = data.draw(st.integers(0, len(whole)))
    if end >= BODY_AT + len(record.body):
        assert parse(whole[:end]) == record
    else:
        with pytest.raises(Damaged):
            parse(whole[:end])


@given(records, st.data())
def test_changed_octet_of_a_message_is_damage(record: Record, data: st.DataObject) -> None:
    """Check that a changed octet makes a message damaged or has no effect; it is never read as struck out."""
    whole = live(record)
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    matters = (
        len(MAGIC) <= at < RECEIPT_AT - 4
        or RECEIPT_AT <= at < STRUCK_AT
        or MTYPE_AT <= at < BODY_AT + len(record.body)
    )
    if matters:
        with pytest.raises(Damaged):
            parse(bytes(whole))
    else:
        assert parse(bytes(whole)) == record


@given(records, st.data())
def test_changed_octet_of_a_struck_message(record: Record, data: st.DataObject) -> None:
    """Check that a changed octet at worst replays a struck message with its number, so that the store ignores it."""
    whole = struck(record)
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        found = parse(bytes(whole))
    except Damaged:
        return
    assert found in (record, None)


@given(records, st.data())
def test_changed_octet_of_a_plan_is_damage(record: Record, data: st.DataObject) -> None:
    """Check that a changed octet of a plan never makes up a message."""
    whole = planned(record, seen=data.draw(st.booleans()))
    at = data.draw(st.integers(0, BODY_AT - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        found = parse(bytes(whole))
    except Damaged:
        return
    assert found is None


@given(records, records, st.integers(0, BODY_AT + ROOM))
def test_half_written_plan_over_a_struck_message(old: Record, new: Record, end: int) -> None:
    """Check a plan that was half written over a struck message when the process was killed."""
    torn = bytes(planned(new)[:end] + struck(old)[end:])
    try:
        found = parse(torn)
    except Damaged:
        return
    assert found in (old, None)


def test_invalid_file_is_damaged() -> None:
    for data in (b"", b"x", MAGIC, bytes(4096), b"\xff" * 4096):
        with pytest.raises(Damaged):
            parse(data)


def test_names_keep_their_octets() -> None:
    record = Record(JOURNAL, 1, Format.RAW, "caf\udce9", 1, b"")
    assert parse(bytes(live(record))) == record
