"""T_MSGs as written by programs, GARBAGE_MSGs in files (rqp_cast.md 2, 4.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_cast import (
    FileDamaged,
    GarbageMsg,
    GarbageReader,
    Quality,
    Reason,
    TMsg,
    encode_garbage,
    encode_t_msg,
    parse_t_msg,
)
from protos.types import PeerError
from tests.protos.feeding import cuts, one_by_one

u32 = st.integers(0, (1 << 32) - 1)
letters = st.lists(st.builds(GarbageMsg, st.binary(max_size=50), st.sampled_from(Reason)), max_size=8)


@given(st.builds(TMsg, st.sampled_from(Quality), u32, u32, st.binary(max_size=50)))
def test_a_t_msg_comes_back(message: TMsg) -> None:
    assert parse_t_msg(encode_t_msg(message)) == message


def test_t_msg_must_fill_its_body() -> None:
    wire = encode_t_msg(TMsg(Quality.HIGH_QUALITY, 99, 7, b"hello"))
    bad = [(wire[:size], "truncated") for size in range(len(wire))]
    bad += [(wire + b"?", "trailing_octets"), (b"\2" + wire[1:], "unknown_type")]
    for body, reason in bad:
        with pytest.raises(PeerError) as caught:
            parse_t_msg(body)
        assert caught.value.reason == reason


def read(reader: GarbageReader, chunks: list[bytes]) -> tuple[list[GarbageMsg], tuple[str, int] | None]:
    """Return the messages, and the reason and offset of the FileDamaged at their end."""
    found: list[GarbageMsg] = []
    try:
        for chunk in chunks:
            for message in reader.receive(chunk):
                found.append(message)  # one by one: those before an error count
        reader.receive_eof()
    except FileDamaged as error:
        return found, (error.reason, error.offset)
    return found, None


@given(letters, st.data())
def test_a_file_comes_back_however_it_is_read(sent: list[GarbageMsg], data: st.DataObject) -> None:
    wire = b"".join(map(encode_garbage, sent))
    reader = GarbageReader(50)
    assert read(reader, data.draw(cuts(wire))) == (sent, None)
    assert reader.offset == len(wire)


GOOD = GarbageMsg(b"hello", Reason.ZOMBIE)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (b"\0\0\0\x33" + b"x" * 55, "message_too_large"),
        (b"\xff\xff\xff\xff", "message_too_large"),
        (b"\0\0\0\1x\0\0\0\3", "unknown_reason"),
        (b"\0", "truncated"),
        (encode_garbage(GOOD)[:-1], "truncated"),
    ],
    ids=["one too large", "no file of these", "no such reason", "in the head", "before the end"],
)
def test_damage_is_reported_with_its_offset_after_good_messages(wire: bytes, reason: str) -> None:
    good = encode_garbage(GOOD) * 3
    for chunks in ([good + wire], one_by_one(good + wire)):
        assert read(GarbageReader(50), chunks) == ([GOOD] * 3, (reason, len(good)))
    with pytest.raises(FileDamaged, match=rf"{reason} at byte 39: "):
        read_to_the_end(GarbageReader(50), good + wire)


def read_to_the_end(reader: GarbageReader, wire: bytes) -> None:
    list(reader.receive(wire))
    reader.receive_eof()


def test_skipped_messages_may_have_any_reason() -> None:
    """Check that skipped messages may have any reason: only their ends are read."""
    odd = b"\0\0\0\1x\0\0\0\3"
    wire = encode_garbage(GOOD) + odd + encode_garbage(GOOD)
    for skip, found in (
        (1, ([], ("unknown_reason", 13))),
        (2, ([GOOD], None)),
        (3, ([], None)),
        (9, ([], None)),
    ):
        for chunks in ([wire], one_by_one(wire)):
            reader = GarbageReader(50, skip)
            assert read(reader, chunks) == found
            assert reader.skipped == min(skip, 3)
    assert read(GarbageReader(50, 5), [b"\xff\xff\xff\xff"]) == ([], ("message_too_large", 0))


def test_no_more_is_held_than_the_unfinished_one() -> None:
    reader = GarbageReader(50)
    list(reader.receive(encode_garbage(GOOD) * 100 + b"\0\0"))
    assert reader.offset == 1_300
    with pytest.raises(FileDamaged, match="2 bytes later"):
        reader.receive_eof()


@given(st.binary(max_size=60))
def test_any_octets_give_at_most_damage(wire: bytes) -> None:
    assert read(GarbageReader(50), one_by_one(wire)) == read(GarbageReader(50), [wire])
