"""Requests that stay incomplete, and idleness (tmq.md 7.3), with a simulated clock."""

from dataclasses import replace

import pytest

from protos.tmq import (
    Connection,
    Create,
    Dialect,
    Enqueue,
    Refused,
    encode_close,
    encode_create,
    encode_enq,
    encode_record,
)
from protos.types import PeerError
from tests.protos.tmq_samples import FIVE, ORDERS, PATIENT, document


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("wire", [encode_create(b"q"), encode_enq(ORDERS, b"ab"), encode_close(ORDERS)])
def test_a_request_may_stay_unfinished_for_the_request_timeout(dialect: Dialect, wire: bytes) -> None:
    for size in range(1, len(wire)):
        source = Connection(dialect, PATIENT)
        assert source.deadline() is None
        list(source.receive(wire[:size], 5.0))
        assert source.deadline() == 37.0
        assert list(source.on_time(36.5)) == []
        with pytest.raises(PeerError, match="request_timeout"):
            list(source.on_time(37.0))
        assert (source.deadline(), source.buffered) == (None, 0)
        assert list(source.receive(wire, 38.0)) == []


def test_the_timeout_counts_from_the_first_byte_of_that_request() -> None:
    source = document(PATIENT)
    wire = encode_enq(ORDERS, b"ab")
    list(source.receive(wire[:1], 1.0))
    for place in range(1, len(wire) - 1):
        list(source.receive(wire[place : place + 1], 2.0 + place / 128))
        assert source.deadline() == 33.0  # a single byte now and then does not help
    assert list(source.receive(wire[-1:] + wire[:1], 20.0)) == [Enqueue(ORDERS, [encode_record(b"ab")])]
    assert source.deadline() == 52.0
    list(source.receive(wire[1:], 21.0))
    assert source.deadline() is None


def test_a_body_thrown_away_counts_from_its_requests_first_byte() -> None:
    source = document(replace(PATIENT, max_message_bytes=1))
    wire = encode_enq(ORDERS, b"abcd")
    list(source.receive(wire[:10], 1.0))
    list(source.receive(wire[10:-2], 2.0))
    list(source.receive(wire[-2:-1], 3.0))
    assert (source.deadline(), source.buffered) == (33.0, 0)
    assert [type(event) for event in source.receive(wire[-1:] + FIVE, 4.0)] == [Refused]
    assert source.deadline() == 4.25
    list(source.receive(wire, 5.0))  # the 5 was a TS, so the ENQ is refused
    assert source.deadline() is None


def test_a_body_thrown_away_for_too_long_is_a_timeout() -> None:
    source = document(replace(PATIENT, max_message_bytes=1))
    list(source.receive(encode_enq(ORDERS, b"abcd")[:-1], 1.0))
    with pytest.raises(PeerError, match="request_timeout"):
        list(source.on_time(33.0))
    assert list(source.receive(b"d\x06", 34.0)) == []


def test_idle_between_requests_is_allowed_for_ever() -> None:
    source = document(PATIENT)
    list(source.receive(encode_create(b"q"), 0.0))
    assert source.deadline() is None
    assert list(source.on_time(1e9)) == []
    assert list(source.receive(encode_create(b"q"), 1e9)) == [Create(b"q")]


@pytest.mark.parametrize(("wire", "wait_s"), [(FIVE, 0.25), (FIVE + b"a", 32.0), (b"\4", 32.0)])
def test_restart_clock_restarts_the_time_limit(wire: bytes, wait_s: float) -> None:
    source = document(PATIENT)
    list(source.receive(wire, 0.0))
    source.restart_clock(1_000.0)
    assert source.deadline() == 1_000.0 + wait_s
    assert list(source.on_time(1_000.0)) == []
    assert list(source.receive(b"", 1_000.5)) == []
    assert source.deadline() == 1_000.0 + wait_s


def test_after_a_pause_with_nothing_unfinished_nothing_is_awaited() -> None:
    source = document(PATIENT)
    source.restart_clock(5.0)
    assert source.deadline() is None
