"""One connection, one message: events do not depend on the cuts (rqp_cast.md 1.2, 5.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_cast import (
    AcceptReceiverMsg,
    AcceptSenderMsg,
    Damaged,
    DataMsg,
    DataReader,
    EndTransmissionMsg,
    Quality,
    Reason,
    Result,
    accept_receiver_reader,
    accept_sender_reader,
    encode_record,
    end_transmission_reader,
)
from protos.types import PeerError
from tests.protos.feeding import cuts, one_by_one
from tests.protos.rqp_cast_samples import (
    FAILURE,
    HIGH,
    KEY,
    LOW,
    SENDER,
    Travelling,
    data_msg,
    encode,
    read,
    reader_for,
)

u32 = st.integers(0, (1 << 32) - 1)
ports = st.integers(1, 65_535)
addresses = st.none() | st.ip_addresses(v=4).map(str)
messages = st.one_of(
    st.builds(AcceptSenderMsg, addresses, ports, u32, ports),
    st.builds(AcceptReceiverMsg, addresses, ports, st.integers(1, (1 << 32) - 1), st.sampled_from(Quality)),
    st.builds(EndTransmissionMsg, addresses, u32, st.sampled_from(Result)),
    st.builds(DataMsg, addresses, u32, st.binary(max_size=300).map(encode_record)),
)


@given(messages, st.binary(max_size=5), st.data())
def test_messages_come_back_as_they_were_encoded(
    message: Travelling, behind: bytes, data: st.DataObject
) -> None:
    reader = reader_for(message)
    assert read(reader, data.draw(cuts(encode(message) + behind))) == [message]
    assert reader.excess == len(behind)


def outcome(wire: bytes, chunks: list[bytes], limit: int = 40, omits: bool = False) -> tuple[object, int]:
    reader = DataReader(KEY, limit, omits)
    found: list[object] = read(reader, chunks)
    assert reader.buffered <= 12 + limit
    found.append(reader.cut("truncated"))
    assert reader.buffered == 0
    assert reader.receive(b"late") is None
    return found, reader.excess


heads = st.builds(
    lambda address, key, size, data: address + key.to_bytes(4) + size.to_bytes(4) + data,
    st.sampled_from([b"", bytes(4)]),
    st.sampled_from([KEY, KEY, KEY + 1]),
    st.integers(0, 50),
    st.binary(max_size=60),
)


@given(st.binary(max_size=30) | heads, st.booleans(), st.data())
def test_any_octets_are_judged_alike_however_cut(wire: bytes, omits: bool, data: st.DataObject) -> None:
    chunks = data.draw(cuts(wire))
    assert outcome(wire, chunks, omits=omits) == outcome(wire, [wire], omits=omits)


# --- messages of a fixed size


@pytest.mark.parametrize("message", [AcceptSenderMsg(SENDER, 1, KEY, 2), HIGH, LOW, FAILURE], ids=str)
def test_message_cut_short_is_truncated(message: Travelling) -> None:
    wire = encode(message)
    for size in range(len(wire)):
        reader = reader_for(message)
        assert read(reader, [wire[:size]]) == []
        with pytest.raises(PeerError, match="truncated"):
            reader.receive_eof()
        assert reader.receive(wire) is None  # it has ended
    reader = reader_for(message)
    assert read(reader, [wire]) == [message]
    reader.receive_eof()


def test_bad_message_is_reported_once() -> None:
    for reader, size in (
        (accept_sender_reader(), 12),
        (accept_receiver_reader(True), 7),
        (end_transmission_reader(), 9),
    ):
        wire = b"\xff" * (size - 1) + b"\2" if size != 12 else bytes(12)
        with pytest.raises(PeerError):
            reader.receive(wire)
        assert reader.receive(wire) is None
        reader.receive_eof()


# --- DATA_MSG (5.2)


def test_the_record_is_as_it_stood_on_the_wire() -> None:
    reader = DataReader(KEY, 100)
    assert reader.receive(data_msg(b"hello")) == DataMsg(SENDER, KEY, b"\0\0\0\5hello")


@pytest.mark.parametrize("size", [39, 40, 41])
def test_the_size_is_judged_before_the_body(size: int) -> None:
    reader = DataReader(KEY, 40)
    wire = data_msg(b"x" * size)
    found = reader.receive(wire[:12])
    if size <= 40:
        assert found is None
        assert isinstance(reader.receive(wire[12:]), DataMsg)
    else:
        assert found == Damaged(Reason.INJURED, b"", "message_too_large")
        assert reader.receive(wire[12:]) is None
        assert (reader.buffered, reader.excess) == (0, 41)


def test_a_huge_size_reserves_nothing() -> None:
    reader = DataReader(KEY, (1 << 32) - 1)
    assert reader.receive(data_msg()[:8] + b"\xff\xff\xff\xff" + b"x") is None
    assert reader.buffered == 13


@pytest.mark.parametrize("detail", ["truncated", "timed_out"])
def test_one_cut_short_is_partially_received(detail: str) -> None:
    wire = data_msg(b"hello")
    for size in range(1, len(wire)):
        reader = DataReader(KEY, 40)
        reader.receive(wire[:size])
        assert reader.cut(detail) == Damaged(Reason.PARTIALLY_RECEIVED, wire[12:size], detail)
        assert reader.cut(detail) is None  # reported once
        assert reader.receive(wire[size:]) is None


def test_empty_input_is_not_damaged() -> None:
    reader = DataReader(KEY, 40)
    assert reader.cut("truncated") is None
    assert reader.receive(data_msg()) is None


def test_one_with_another_key_is_injured_and_kept_whole() -> None:
    wire = data_msg(b"hello", key=KEY + 1)
    for chunks in ([wire], one_by_one(wire)):
        found = read(DataReader(KEY, 40), chunks)
        assert found == [Damaged(Reason.INJURED, b"hello", "other_key")]


def test_one_with_another_key_that_is_cut_short_is_injured_too() -> None:
    reader = DataReader(KEY, 40)
    assert reader.receive(data_msg(b"hello", key=KEY + 1)[:-2]) is None
    assert reader.cut("truncated") == Damaged(Reason.INJURED, b"hel", "other_key")
