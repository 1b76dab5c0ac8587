"""A link's octets at their limits, and in time (ring.md 2)."""

from itertools import chain

import pytest

from protos.ring import (
    MAX_USER,
    Acks,
    BreakLinkForced,
    Connection,
    Leader,
    Limits,
    LinkBroken,
    Message,
    Unusable,
    User,
    encode_message,
)
from protos.types import LocalError, PeerError
from tests.protos.feeding import assert_over, one_by_one
from tests.protos.ring.samples import LARGEST_MESSAGE, PATIENT, linked

LATE = (encode_message(User(b"late")), b"LOOP", b"\xff", b"")  # valid and invalid: none of it may count


def loop(subtype: int, rest: bytes) -> bytes:
    """Encode a LOOP with TTL 9 without any check."""
    payload = b"\0\x09" + bytes([subtype]) + rest
    return b"LOOP" + len(payload).to_bytes(2, "big") + payload


def link(limits: Limits = PATIENT) -> Connection:
    return Connection(limits)


# --- lengths (2.1, 2.5)


def test_a_user_of_16384_is_taken_and_passed_on() -> None:
    wire = b"USER\x40\0" + b"x" * MAX_USER
    assert linked([wire]) == ([User(b"x" * MAX_USER)], None)
    assert encode_message(User(b"x" * MAX_USER)) == wire


@pytest.mark.parametrize("kind", [b"USER", b"LOOP"])
@pytest.mark.parametrize("size", [16385, 16386, 32768, 65535])
def test_a_longer_one_is_refused_before_any_of_it_is_held(kind: bytes, size: int) -> None:
    for chunks in ([head := kind + size.to_bytes(2, "big")], one_by_one(head), [head + b"x" * size]):
        source = link()
        with pytest.raises(PeerError) as caught:
            list(chain.from_iterable(source.receive(chunk, 0.0) for chunk in chunks))
        assert (caught.value.reason, caught.value.detail) == ("too_long", f"{kind.decode()} of {size} octets")
        assert_over(source, LATE)


def test_the_longest_loop_is_held_and_found_unusable() -> None:
    """Check that the longest LOOP is read and found unusable (2.1, 2.3)."""
    wire = b"LOOP\x40\0" + b"\0\7\0\xff" + b"n" * 16380
    assert linked([wire, wire]) == ([Unusable("bad_name", 7)] * 2, None)
    assert linked(one_by_one(wire)) == ([Unusable("bad_name", 7)], None)


def test_no_more_is_held_than_one_message() -> None:
    source = link()
    wire = encode_message(User(b"x" * MAX_USER))
    assert list(source.receive(wire[:-1], 0.0)) == []
    assert source.buffered == LARGEST_MESSAGE - 1
    assert len(list(source.receive(wire[-1:] + wire[:-1], 0.0))) == 1
    assert source.buffered == LARGEST_MESSAGE - 1


# --- types (2.5)


@pytest.mark.parametrize(
    "kind", [b"\0\0\0\0", b"user", b"OPEN", b"FIND", b"USE\0", b"LOOK", b"AAAA", b"GET "]
)
def test_any_other_type_is_refused_as_soon_as_it_is_there(kind: bytes) -> None:
    good = encode_message(Leader(b"n"))
    for chunks in ([kind], one_by_one(kind), [kind + b"\0\0"], [kind + b"\xff\xff" + b"x" * 99]):
        assert linked(chunks) == ([], "unknown_type")
        assert linked([good, *chunks]) == ([Leader(b"n")], "unknown_type")
    for size in range(1, 4):
        assert linked([kind[:size]]) == ([], "truncated")


# --- names (2.3)


@pytest.mark.parametrize("kind", [Leader, LinkBroken])
def test_a_name_is_any_octets_1_to_255_of_them(kind: type[Leader] | type[LinkBroken]) -> None:
    for one in (b"\0", b"a:b:c", "ñ".encode(), bytes(range(1, 256)), b"n" * 255):
        for ttl in (0, 1, 255, 65025, 65535):
            message = kind(one, ttl)
            assert linked([encode_message(message)]) == ([message], None)


@pytest.mark.parametrize("kind", [Leader, LinkBroken])
def test_a_name_fills_the_rest_exactly_or_the_loop_is_unusable(
    kind: type[Leader] | type[LinkBroken],
) -> None:
    for stated in range(256):
        for size in (0, 1, 8, 254, 255, 256):
            fits = size == stated and size > 0
            expected: Message = kind(b"n" * size, 9) if fits else Unusable("bad_name", 9)
            rest = bytes([stated]) + b"n" * size
            assert linked([loop(kind is LinkBroken, rest)]) == ([expected], None), (stated, size)


def test_an_unknown_subtype_is_unusable_whatever_follows() -> None:
    for subtype in range(3, 256):
        for rest in (b"", b"\1a", b"x" * 20):
            expected = [Unusable("unknown_subtype", 9)] * 2
            assert linked([loop(subtype, rest)] * 2) == (expected, None), subtype


# --- messages that are never sent


@pytest.mark.parametrize(
    "message",
    [Unusable("bad_name"), User(b"x" * (MAX_USER + 1)), Leader(b""), LinkBroken(b""), Leader(b"n" * 256)],
)
def test_encoding_an_invalid_message_is_a_local_error(message: Message) -> None:
    with pytest.raises(LocalError):
        encode_message(message)


# --- time (2.7)


def test_a_message_may_stay_unfinished_for_the_request_timeout() -> None:
    wire = encode_message(LinkBroken(b"n"))
    for size in range(1, len(wire)):
        source = link()
        assert source.deadline() is None
        list(source.receive(wire[:size], 5.0))
        assert source.deadline() == 37.0
        assert list(source.on_time(36.5)) == []
        with pytest.raises(PeerError, match="request_timeout"):
            list(source.on_time(37.0))
        assert_over(source, LATE)


def test_the_timeout_counts_from_the_first_octet_of_that_message() -> None:
    source, wire = link(), encode_message(User(b"hello"))
    list(source.receive(wire[:1], 1.0))
    for place in range(1, len(wire) - 1):
        list(source.receive(wire[place : place + 1], 2.0 + place / 128))
        assert source.deadline() == 33.0  # a single octet now and then does not help
    assert list(source.receive(wire[-1:] + wire[:1], 20.0)) == [User(b"hello")]
    assert source.deadline() == 52.0
    assert list(source.receive(wire[1:], 21.0)) == [User(b"hello")]
    assert source.deadline() is None


def test_restart_clock_restarts_the_time_limit() -> None:
    source = link()
    source.restart_clock(5.0)
    assert source.deadline() is None
    list(source.receive(b"US", 0.0))
    source.restart_clock(1_000.0)
    assert (source.deadline(), list(source.on_time(1_000.0))) == (1_032.0, [])


def test_parser_has_no_idle_time_limit() -> None:
    source = link()
    list(source.receive(encode_message(BreakLinkForced()), 0.0))
    assert (source.deadline(), list(source.on_time(1e9))) == (None, [])


def test_fin_inside_a_message_cuts_it_short() -> None:
    wire = encode_message(Leader(b"n"))
    for size in range(1, len(wire)):
        assert linked([wire + wire[:size]]) == ([Leader(b"n")], "truncated")
    source = link()
    list(source.receive(wire, 0.0))
    assert list(source.receive_eof(0.0)) == []
    assert_over(source, LATE)


# --- acknowledgements (2.2)


def test_every_other_octet_is_no_acknowledgement() -> None:
    for octet in set(range(256)) - {ord("A")}:
        acks = Acks()
        assert list(acks.receive(b"")) == []
        with pytest.raises(PeerError) as caught:
            list(acks.receive(bytes([octet])))
        assert (caught.value.reason, caught.value.detail) == ("not_an_ack", f"0x{octet:02x}")
        assert list(acks.receive(b"A")) == []


def test_acknowledgements_may_come_in_any_pieces() -> None:
    acks = Acks()
    assert list(acks.receive(b"A" * 64)) == [64]
    assert [list(acks.receive(piece)) for piece in (b"A", b"", b"AA")] == [[1], [], [2]]
