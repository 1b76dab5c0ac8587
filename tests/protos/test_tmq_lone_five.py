"""The three meanings of 5 (tmq.md 3.1, 4.2), with a simulated clock."""

from dataclasses import replace

import pytest

from protos.tmq import (
    Connection,
    Create,
    Dequeue,
    Dialect,
    Enqueue,
    Limits,
    Select,
    TransactionEnd,
    TransactionStart,
    encode_close,
    encode_create,
    encode_delete,
    encode_dnq,
    encode_enq,
    encode_open,
    encode_record,
    encode_select,
    encode_te,
    encode_ts,
    nil_mqid,
)
from protos.types import PeerError
from tests.protos.tmq_samples import FIVE, ORDERS, PATIENT, document, events_of, outcome

MQID_STARTS = b"0123456789abcdef<"


# --- decided by the next byte


def test_5_before_octets_that_cannot_begin_an_mqid_is_a_ts_at_once() -> None:
    for following in set(range(256)) - set(MQID_STARTS):
        source = document(PATIENT)
        stream = source.receive(FIVE + bytes([following]), 0.0)
        assert next(stream) == TransactionStart()


@pytest.mark.parametrize("start", MQID_STARTS)
def test_5_before_octets_that_can_begin_an_mqid_is_a_dnq(start: int) -> None:
    mqid = bytes([start]) + b"z" * 63  # only the first byte is checked
    assert events_of(FIVE + mqid) == [Dequeue(mqid, 1)]
    source = document(PATIENT)
    assert list(source.receive(FIVE, 0.0)) == []
    assert list(source.receive(mqid[:1], 0.0)) == []
    assert source.deadline() == 32.0  # no longer a lone 5
    assert list(source.receive(mqid[1:], 0.0)) == [Dequeue(mqid, 1)]


def test_a_dnq_of_nil_is_a_dnq() -> None:
    assert events_of(encode_dnq(nil_mqid(Dialect.DOCUMENT)) * 2) == [Dequeue(nil_mqid(Dialect.DOCUMENT), 2)]


@pytest.mark.parametrize(
    "following",
    [
        encode_create(b"q"),
        encode_delete(b"q"),
        encode_open(b"q"),
        encode_close(ORDERS),
        encode_enq(ORDERS, b"a"),
        encode_dnq(ORDERS),
        encode_te(Dialect.DOCUMENT),
        b"\x07",
        encode_ts(Dialect.DOCUMENT),
        encode_select(ORDERS),
    ],
)
def test_any_request_sent_ahead_behind_a_5_makes_it_a_ts(following: bytes) -> None:
    assert events_of(FIVE + following) == [TransactionStart(), *events_of(following)]


def test_several_fives_are_so_many_ts_and_the_last_one_waits() -> None:
    source = document(PATIENT)
    assert list(source.receive(FIVE * 3, 0.0)) == [TransactionStart()] * 2
    assert source.deadline() == 0.25


def test_a_run_of_dnqs_ends_at_a_5_that_is_a_ts() -> None:
    wire = encode_dnq(ORDERS) * 2 + FIVE + encode_dnq(ORDERS)
    assert events_of(wire) == [Dequeue(ORDERS, 2), TransactionStart(), Dequeue(ORDERS, 1)]


def test_a_5_before_an_unknown_code_is_a_ts_and_then_an_error() -> None:
    assert outcome(document(PATIENT), [FIVE + b"\xff"]) == ([TransactionStart()], "unknown_code")


# --- decided by FIN


@pytest.mark.parametrize("limits", [PATIENT, replace(PATIENT, lone_five_grace_s=0)])
@pytest.mark.parametrize("before", [b"", encode_ts(Dialect.DOCUMENT), encode_select(ORDERS)])
def test_a_5_before_fin_is_a_ts(limits: Limits, before: bytes) -> None:
    events, error = outcome(document(limits), [before + FIVE])
    assert events == [*events_of(before), TransactionStart()]
    assert error is None


def test_fin_counts_only_while_the_5_is_alone() -> None:
    assert outcome(document(PATIENT), [FIVE + b"a"]) == ([], "truncated")


# --- decided by time


def test_a_5_before_nothing_is_a_ts_after_the_grace() -> None:
    source = document(PATIENT)
    assert list(source.receive(FIVE, 100.0)) == []
    assert source.deadline() == 100.25
    assert list(source.on_time(100.125)) == []
    assert list(source.on_time(100.25)) == [TransactionStart()]
    assert (source.deadline(), source.buffered) == (None, 0)
    assert list(source.on_time(200.0)) == []
    assert list(source.receive(encode_enq(ORDERS, b"a"), 200.0)) == [Enqueue(ORDERS, [encode_record(b"a")])]


def test_grace_ends_only_in_on_time() -> None:
    # A stalled server must not take its own delay for the client's silence.
    source = document(PATIENT)
    list(source.receive(FIVE, 0.0))
    assert list(source.receive(ORDERS, 9.0)) == [Dequeue(ORDERS, 1)]


def test_a_dnq_cut_behind_its_5_for_longer_than_the_grace_is_taken_for_a_ts() -> None:
    source = document(PATIENT)
    list(source.receive(FIVE, 0.0))
    assert list(source.on_time(0.25)) == [TransactionStart()]
    with pytest.raises(PeerError, match="unknown_code: 0x31"):
        list(source.receive(ORDERS, 0.5))


def test_the_grace_is_counted_from_the_5_that_is_alone() -> None:
    source = document(PATIENT)
    list(source.receive(encode_dnq(ORDERS)[:-1], 0.0))
    assert list(source.receive(ORDERS[-1:] + FIVE, 10.0)) == [Dequeue(ORDERS, 1)]
    assert source.deadline() == 10.25


@pytest.mark.parametrize("before", [encode_ts(Dialect.DOCUMENT), encode_select(ORDERS)], ids=["8", "9"])
def test_no_grace_on_a_connection_that_has_used_8_or_9(before: bytes) -> None:
    source = document(PATIENT)
    list(source.receive(before, 0.0))
    list(source.receive(encode_create(b"q") + FIVE, 1.0))
    assert source.deadline() == 33.0
    assert list(source.on_time(32.5)) == []
    assert list(source.receive(ORDERS, 32.5)) == [Dequeue(ORDERS, 1)]
    assert list(source.receive(FIVE + b"\x06", 33.0)) == [TransactionStart(), TransactionEnd()]
    list(source.receive(FIVE, 34.0))
    with pytest.raises(PeerError, match="request_timeout"):
        list(source.on_time(66.0))


@pytest.mark.parametrize("grace_s", [0, 32.5], ids=["off", "longer than the request timeout"])
def test_a_grace_that_never_applies(grace_s: float) -> None:
    source = document(replace(PATIENT, lone_five_grace_s=grace_s))
    list(source.receive(FIVE, 0.0))
    assert source.deadline() == 32.0
    assert list(source.on_time(31.0)) == []
    with pytest.raises(PeerError, match="request_timeout"):
        list(source.on_time(40.0))


# --- 5 + MQID as SELECT


def test_5_and_an_mqid_can_be_configured_to_be_a_select() -> None:
    limits = replace(PATIENT, code5_mqid_is_select=True)
    assert events_of(encode_dnq(ORDERS) * 2, limits=limits) == [Select(ORDERS, 2)]
    assert events_of(FIVE + encode_create(b"q"), limits=limits) == [TransactionStart(), Create(b"q")]
    source = document(limits)
    list(source.receive(FIVE + ORDERS + FIVE, 0.0))
    assert list(source.on_time(0.25)) == [TransactionStart()]  # that 5 is not a use of 9
    assert events_of(encode_dnq(ORDERS), Dialect.REFERENCE, limits) == [Dequeue(ORDERS, 1)]  # 4.2


# --- dialect reference: 5 is DNQ (4.2)


def test_in_the_reference_dialect_5_is_a_dnq_whatever_follows() -> None:
    for start in range(256):
        mqid = bytes([start]) * 64
        assert events_of(FIVE + mqid, Dialect.REFERENCE) == [Dequeue(mqid, 1)]


def test_in_the_reference_dialect_a_5_alone_is_an_unfinished_dnq() -> None:
    source = Connection(Dialect.REFERENCE, PATIENT)
    list(source.receive(FIVE, 0.0))
    assert source.deadline() == 32.0
    assert list(source.on_time(31.0)) == []
    with pytest.raises(PeerError, match="truncated"):
        list(source.receive_eof(31.0))
