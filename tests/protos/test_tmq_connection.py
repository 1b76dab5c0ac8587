"""Runs, unknown codes and the end of a connection (tmq.md 3.2, 3.3, 7.6)."""

import pytest

from protos.tmq import (
    MAX_RUN,
    Close,
    Connection,
    Create,
    Dequeue,
    Dialect,
    Enqueue,
    Limits,
    Operation,
    Refused,
    Select,
    TransactionEnd,
    encode_create,
    encode_dnq,
    encode_enq,
    encode_record,
    encode_select,
)
from protos.types import PeerError
from tests.protos.feeding import assert_over
from tests.protos.tmq_samples import BILLS, LATE, ORDERS, TE, TIGHT, document, enq_head, events_of, outcome

# --- runs (7.6)


def test_like_requests_in_a_row_are_one_event() -> None:
    wire = b"".join(encode_enq(ORDERS, body) for body in (b"a", b"", b"ccc"))
    assert events_of(wire) == [Enqueue(ORDERS, [encode_record(body) for body in (b"a", b"", b"ccc")])]
    assert events_of(encode_dnq(ORDERS) * 40) == [Dequeue(ORDERS, 40)]
    assert events_of(encode_select(ORDERS) * 3) == [Select(ORDERS, 3)]


def test_another_mqid_or_operation_ends_a_run() -> None:
    wire = (
        encode_dnq(ORDERS) * 2
        + encode_dnq(BILLS)
        + encode_enq(BILLS, b"a")
        + encode_enq(ORDERS, b"b")
        + encode_select(ORDERS)
        + encode_dnq(ORDERS)
    )
    assert events_of(wire) == [
        Dequeue(ORDERS, 2),
        Dequeue(BILLS, 1),
        Enqueue(BILLS, [encode_record(b"a")]),
        Enqueue(ORDERS, [encode_record(b"b")]),
        Select(ORDERS, 1),
        Dequeue(ORDERS, 1),
    ]


@pytest.mark.parametrize("count", [MAX_RUN - 1, MAX_RUN, MAX_RUN + 1, 2 * MAX_RUN + 7])
def test_a_run_has_at_most_a_thousand_requests(count: int) -> None:
    sizes = [min(MAX_RUN, count - done) for done in range(0, count, MAX_RUN)]
    assert events_of(encode_dnq(ORDERS) * count) == [Dequeue(ORDERS, size) for size in sizes]
    assert events_of(encode_select(ORDERS) * count) == [Select(ORDERS, size) for size in sizes]
    runs = events_of(encode_enq(ORDERS, b"x") * count)
    assert runs == [Enqueue(ORDERS, [encode_record(b"x")] * size) for size in sizes]


def test_a_run_is_handed_out_without_waiting_for_the_unfinished_request_behind_it() -> None:
    source = document()
    wire = encode_enq(ORDERS, b"a") * 3
    assert list(source.receive(wire[:-1], 0.0)) == [Enqueue(ORDERS, [encode_record(b"a")] * 2)]
    assert list(source.receive(wire[-1:], 0.0)) == [Enqueue(ORDERS, [encode_record(b"a")])]


def test_a_bad_length_ends_a_run_and_spoils_nothing_before_or_after_it() -> None:
    good, bad = encode_enq(ORDERS, b"a"), encode_enq(ORDERS, b"m" * 41)
    assert events_of(good * 2 + bad + good, limits=TIGHT) == [
        Enqueue(ORDERS, [encode_record(b"a")] * 2),
        Refused(Operation.ENQ, "message_too_large", close=False),
        Enqueue(ORDERS, [encode_record(b"a")]),
    ]


def test_an_mqid_is_handed_on_as_it_came() -> None:
    odd = bytes(range(64))
    assert events_of(b"\3" + odd) == [Close(odd)]
    assert events_of(encode_select(odd)) == [Select(odd, 1)]
    assert events_of(encode_enq(odd, b"a")) == [Enqueue(odd, [encode_record(b"a")])]


# --- unknown codes and the end (3.2, 3.3)


@pytest.mark.parametrize("dialect", Dialect)
def test_an_unknown_code_ends_it_after_all_that_came_before(dialect: Dialect) -> None:
    for code in range(10, 256):
        source = Connection(dialect, Limits())
        wire = encode_create(b"q") + encode_enq(ORDERS, b"a") + bytes([code]) + encode_create(b"q")
        stream = source.receive(wire, 0.0)
        assert next(stream) == Create(b"q")
        assert next(stream) == Enqueue(ORDERS, [encode_record(b"a")])
        with pytest.raises(PeerError) as caught:
            next(stream)
        assert (caught.value.reason, caught.value.detail) == ("unknown_code", f"0x{code:02x}")
        assert_over(source, LATE)


@pytest.mark.parametrize(
    "wire",
    [encode_create(b"q"), encode_enq(ORDERS, b"a"), encode_dnq(ORDERS), b"\3" + ORDERS],
    ids=["CREATE", "ENQ", "DNQ", "CLOSE"],
)
def test_fin_inside_a_request_cuts_it_short(wire: bytes) -> None:
    start = 2 if wire[0] == 5 else 1  # a 5 alone is a TS (3.1)
    for size in range(start, len(wire)):
        assert outcome(document(), [TE + wire[:size]]) == ([TransactionEnd()], "truncated")
    assert outcome(document(), [wire])[1] is None


def test_fin_inside_a_body_thrown_away_cuts_it_short() -> None:
    assert outcome(document(TIGHT), [enq_head(41) + b"m" * 40]) == ([], "truncated")


def test_fin_between_requests_is_a_good_end() -> None:
    source = document()
    assert list(source.receive(TE, 0.0)) == [TransactionEnd()]
    assert list(source.receive_eof(0.0)) == []
    assert_over(source, LATE)
