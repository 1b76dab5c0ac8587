"""Names and bodies: accepted, discarded, or ending the connection (tmq.md 2.1, 7.1, 7.5)."""

import tracemalloc

import pytest

from protos.tmq import (
    Create,
    Delete,
    Enqueue,
    Open,
    Operation,
    Refused,
    TransactionEnd,
    encode_create,
    encode_enq,
    encode_record,
)
from tests.protos.feeding import assert_over, cut, one_by_one
from tests.protos.tmq_samples import LATE, ORDERS, TE, TIGHT, document, enq_head, events_of, u32

NAMED = [
    (b"\0", Operation.CREATE, Create),
    (b"\1", Operation.DELETE, Delete),
    (b"\2", Operation.OPEN, Open),
]


# --- names (2.1)


@pytest.mark.parametrize(("code", "operation", "event"), NAMED)
@pytest.mark.parametrize("name", [b"q", b"\0\xff\n", b"n" * 255])
def test_a_name_is_1_to_255_bytes_of_any_value(code: bytes, operation: Operation, event, name: bytes) -> None:
    assert events_of(code + u32(len(name)) + name + TE) == [event(name), TransactionEnd()]


@pytest.mark.parametrize(("code", "operation", "event"), NAMED)
def test_an_empty_name_is_refused(code: bytes, operation: Operation, event) -> None:
    refused = Refused(operation, "bad_name", close=False)
    assert events_of(code + u32(0)) == [refused]
    assert events_of(code + u32(0) + TE) == [refused, TransactionEnd()]


@pytest.mark.parametrize(("code", "operation", "event"), NAMED)
@pytest.mark.parametrize("size", [256, 64 << 10])
def test_a_long_name_is_read_away_and_refused(code: bytes, operation: Operation, event, size: int) -> None:
    source = document()
    assert list(source.receive(code + u32(size) + b"n" * (size - 1), 0.0)) == []
    assert source.buffered == 0
    assert list(source.receive(b"n" + TE, 0.0)) == [
        Refused(operation, "name_too_long", close=False),
        TransactionEnd(),
    ]


@pytest.mark.parametrize(("code", "operation", "event"), NAMED)
@pytest.mark.parametrize("size", [(64 << 10) + 1, 0xFFFFFFFF])
def test_a_huge_name_is_refused_unread_and_ends_it(
    code: bytes, operation: Operation, event, size: int
) -> None:
    source = document()
    refused = Refused(operation, "name_too_long", close=True)
    assert list(source.receive(TE + code + u32(size) + TE, 0.0)) == [TransactionEnd(), refused]
    assert_over(source, LATE)


# --- bodies (7.1)


def test_a_body_may_be_as_large_as_the_limit() -> None:
    body = b"m" * (1 << 20)
    assert events_of(encode_enq(ORDERS, body)) == [Enqueue(ORDERS, [encode_record(body)])]


@pytest.mark.parametrize("size", [(1 << 20) + 1, 16 << 20])
def test_a_large_body_is_read_away_and_refused(size: int) -> None:
    source = document()
    refused = Refused(Operation.ENQ, "message_too_large", close=False)
    assert list(source.receive(enq_head(size), 0.0)) == []
    assert list(source.receive(b"m" * (size - 1), 0.0)) == []
    assert list(source.receive(b"m" + TE, 0.0)) == [refused, TransactionEnd()]


@pytest.mark.parametrize("size", [(16 << 20) + 1, 0x80000000, 0xFFFFFFFF])
def test_a_huge_or_negative_length_is_refused_and_ends_it(size: int) -> None:
    source = document()
    refused = Refused(Operation.ENQ, "message_too_large", close=True)
    assert list(source.receive(encode_enq(ORDERS, b"a") + enq_head(size) + TE, 0.0)) == [
        Enqueue(ORDERS, [encode_record(b"a")]),
        refused,
    ]
    assert_over(source, LATE)


def test_a_body_thrown_away_is_not_held() -> None:
    source = document()
    piece = b"m" * (64 << 10)
    tracemalloc.start()
    try:
        list(source.receive(enq_head(16 << 20), 0.0))
        for _ in range(255):
            assert list(source.receive(piece, 0.0)) == []
            assert source.buffered == 0
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 10
    assert [type(event) for event in source.receive(piece, 0.0)] == [Refused]


def test_nothing_is_allocated_for_a_length_that_is_only_announced() -> None:
    tracemalloc.start()
    try:
        sources = [document() for _ in range(100)]
        for source in sources:
            list(source.receive(enq_head(1 << 20), 0.0))
            assert source.buffered == len(enq_head(0))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100 * 2_000


def test_memory_of_a_large_request_is_given_back() -> None:
    source = document()
    wire = encode_enq(ORDERS, b"m" * (1 << 20))
    pieces = cut(wire, range(4_096, len(wire), 4_096))
    tracemalloc.start()
    try:
        events = [event for piece in pieces for event in source.receive(piece, 0.0)]
        with_message_bytes, _ = tracemalloc.get_traced_memory()
        events.clear()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert source.buffered == 0
    assert with_message_bytes - held_bytes > 1 << 20
    assert held_bytes < 16 << 10


def test_a_large_body_in_small_pieces_is_not_copied_at_every_piece() -> None:
    source = document()
    wire = encode_enq(ORDERS, b"m" * (1 << 20))
    tracemalloc.start()
    try:
        list(source.receive(wire[:-100], 0.0))
        tracemalloc.reset_peak()
        before_bytes, _ = tracemalloc.get_traced_memory()
        for piece in one_by_one(wire[-100:-1]):
            assert list(source.receive(piece, 0.0)) == []
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes - before_bytes < 256 << 10  # room to grow, not a second copy of 1 MiB


def test_buffered_octets_are_counted() -> None:
    source = document()
    wire = encode_enq(ORDERS, b"0123456789")
    for number, piece in enumerate(one_by_one(wire)[:-1], 1):
        assert list(source.receive(piece, 0.0)) == []
        assert source.buffered == number
    assert list(source.receive(wire[-1:], 0.0)) == [Enqueue(ORDERS, [encode_record(b"0123456789")])]
    assert source.buffered == 0


def test_limits_can_be_set() -> None:
    assert events_of(encode_create(b"n" * 9), limits=TIGHT) == [
        Refused(Operation.CREATE, "name_too_long", close=False)
    ]
    assert events_of(enq_head(401), limits=TIGHT) == [Refused(Operation.ENQ, "message_too_large", close=True)]
