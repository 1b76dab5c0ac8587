"""Random input, cut at random places (tmq.md 1.1, 7.1, 7.5). A failure prints how to repeat it."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from protos.tmq import (
    Close,
    Connection,
    Create,
    Delete,
    Dequeue,
    Dialect,
    Enqueue,
    Event,
    Limits,
    Open,
    Operation,
    Refused,
    Request,
    Select,
    TransactionAbort,
    TransactionEnd,
    TransactionStart,
    encode_create,
    encode_delete,
    encode_enq,
    encode_open,
    encode_record,
    encode_request,
)
from protos.types import PeerError
from tests.protos.feeding import cuts
from tests.protos.tmq_samples import BILLS, ORDERS, TIGHT, merged, outcome

dialects = st.sampled_from(Dialect)
# Few, so that runs arise; the last ones begin as in 3.1, for DNQ, but are no valid MQIDs.
mqids = st.sampled_from([ORDERS, BILLS]) | st.builds(
    lambda first, rest: bytes([first]) + rest,
    st.sampled_from(b"0123456789abcdef<"),
    st.binary(min_size=63, max_size=63),
)
counts = st.integers(1, 40)


def requests(max_name_bytes: int, max_body_bytes: int) -> st.SearchStrategy[Request]:
    names = st.binary(min_size=1, max_size=max_name_bytes)
    records = st.binary(max_size=max_body_bytes).map(encode_record)
    return st.one_of(
        st.builds(Create, names),
        st.builds(Delete, names),
        st.builds(Open, names),
        st.builds(Close, mqids),
        st.builds(Enqueue, mqids, st.lists(records, min_size=1, max_size=20)),
        st.builds(Dequeue, mqids, counts),
        st.builds(Select, mqids, counts),
        st.sampled_from([TransactionStart(), TransactionEnd(), TransactionAbort()]),
    )


@given(dialects, st.lists(requests(255, 2_000), max_size=12), st.data())
def test_requests_come_back_as_they_were_encoded(
    dialect: Dialect, sent: list[Request], data: st.DataObject
) -> None:
    wire = b"".join(encode_request(dialect, request) for request in sent)
    chunks = data.draw(cuts(wire))
    assert outcome(Connection(dialect, Limits()), chunks) == (merged(sent), None)


@dataclass(frozen=True)
class Sent:
    """Bytes of a request, and the events expected under TIGHT."""

    wire: bytes
    event: Event | None
    error: str | None = None


NAMED = [
    (encode_create, Operation.CREATE),
    (encode_delete, Operation.DELETE),
    (encode_open, Operation.OPEN),
]


def bad_name(encoder, size: int) -> Sent:
    encode, operation = encoder
    reason = "name_too_long" if size else "bad_name"
    return Sent(encode(b"\0" * size), Refused(operation, reason, size > TIGHT.max_name_discard_bytes))


def large_body(mqid: bytes, size: int) -> Sent:
    close = size > TIGHT.max_discard_bytes
    return Sent(encode_enq(mqid, b"\5" * size), Refused(Operation.ENQ, "message_too_large", close))


recoverable = st.one_of(
    st.builds(bad_name, st.sampled_from(NAMED), st.just(0) | st.integers(9, 80)),
    st.builds(large_body, mqids, st.integers(41, 400)),
)
fatal = st.one_of(
    st.builds(bad_name, st.sampled_from(NAMED), st.integers(81, 300)),
    st.builds(large_body, mqids, st.integers(401, 900)),
    st.builds(lambda code: Sent(bytes([code]), None, "unknown_code"), st.integers(10, 255)),
)


@given(dialects, st.lists(requests(8, 40) | recoverable, max_size=12), fatal, st.data())
def test_good_requests_around_bad_ones_all_come_out(
    dialect: Dialect, sent: list[Request | Sent], last: Sent, data: st.DataObject
) -> None:
    items = [item if isinstance(item, Sent) else Sent(encode_request(dialect, item), item) for item in sent]
    wire = b"".join(item.wire for item in [*items, last]) + encode_create(b"never")
    events = merged(item.event for item in [*items, last] if item.event is not None)
    assert outcome(Connection(dialect, TIGHT), data.draw(cuts(wire))) == (events, last.error)


pieces = st.one_of(
    st.binary(max_size=100),
    st.binary(min_size=1, max_size=3).map(lambda low: b"\4" + ORDERS + low.rjust(4, b"\0")),
    st.lists(st.integers(0, 10), max_size=20).map(bytes),
    mqids.map(lambda mqid: b"\5" + mqid),
)


@given(dialects, st.booleans(), st.lists(pieces, max_size=8).map(b"".join), st.data())
def test_any_bytes_give_the_same_events_however_cut_and_at_most_a_peer_error(
    dialect: Dialect, code5_mqid_is_select: bool, wire: bytes, data: st.DataObject
) -> None:
    limits = Limits(40, 400, 8, 80, code5_mqid_is_select=code5_mqid_is_select)
    whole = outcome(Connection(dialect, limits), [wire])
    assert outcome(Connection(dialect, limits), data.draw(cuts(wire))) == whole


@given(dialects, st.lists(pieces, max_size=12))
def test_little_is_held_and_time_is_asked_for_only_while_something_is_unfinished(
    dialect: Dialect, chunks: list[bytes]
) -> None:
    source = Connection(dialect, TIGHT)
    try:
        for now, chunk in enumerate(chunks):
            for _ in source.receive(chunk, float(now)):
                pass
            assert source.buffered < 1 + 64 + 4 + TIGHT.max_message_bytes
    except PeerError:
        assert (source.buffered, source.deadline()) == (0, None)
    is_unfinished = source.deadline() is not None
    events, error = outcome(source, [])
    assert (error == "truncated" or events == [TransactionStart()]) is is_unfinished
