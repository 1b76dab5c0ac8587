"""The client port: runs, refused and discarded input, and time (ring.md 5.2, 5.6)."""

from dataclasses import replace

import pytest

from protos.ring import (
    HEAD_BYTES,
    MAX_RUN,
    ClientConnection,
    Create,
    Destroy,
    Operation,
    Pull,
    Refused,
    echo_of,
    encode_deliveries,
    encode_record,
    encode_refusal,
    encode_replies,
    encode_reply,
    encode_request,
    parse_reply,
)
from protos.types import LocalError, PeerError
from tests.protos.feeding import assert_over, one_by_one
from tests.protos.ring.samples import BILLS, ORDERS, PATIENT, TIGHT, asked, pushes

PULL = Pull(ORDERS, b"orders", 1)
GOOD = encode_request(PULL)
# valid and invalid: none of it may count
LATE = (GOOD, encode_request(pushes(b"a")), b"\xff\xff\xff\xff", b"\0")
CODES = {Operation.CREATE_QUEUE: 0, Operation.PUSH: 1, Operation.PULL: 2, Operation.DESTROY_QUEUE: 3}


def client() -> ClientConnection:
    return ClientConnection(PATIENT)


def request(operation: int, size: int, echo: bytes = ORDERS) -> bytes:
    """Return a request that announces `size` octets of message, without them."""
    return operation.to_bytes(4, "big") + echo + size.to_bytes(4, "big")


def events_of(wire: bytes) -> list[object]:
    """Return the events of one chunk on a fresh connection, with runs as they are."""
    return list(ClientConnection(TIGHT).receive(wire, 0.0))


# --- runs


def test_like_requests_in_a_row_are_one_event() -> None:
    run = pushes(b"a", b"", b"ccc")
    assert events_of(encode_request(run)) == [run]
    assert events_of(GOOD * 40) == [Pull(ORDERS, b"orders", 40)]


def test_another_queue_sender_or_operation_ends_a_run() -> None:
    other = echo_of(b"checkout", b"orders")
    run = [
        pushes(b"a", b"b"),
        pushes(b"c", echo=BILLS, queue=b"bills"),
        pushes(b"d", echo=other),
        Pull(ORDERS, b"orders", 2),
        Pull(other, b"orders", 1),
        Create(ORDERS, b"orders"),
        Create(ORDERS, b"orders"),
        Destroy(BILLS, b"bills"),
        pushes(b"e"),
    ]
    assert events_of(b"".join(map(encode_request, run))) == run


@pytest.mark.parametrize("count", [MAX_RUN - 1, MAX_RUN, MAX_RUN + 1, 2 * MAX_RUN + 7])
def test_a_run_has_at_most_a_thousand_requests(count: int) -> None:
    sizes = [min(MAX_RUN, count - done) for done in range(0, count, MAX_RUN)]
    assert events_of(GOOD * count) == [Pull(ORDERS, b"orders", size) for size in sizes]
    assert events_of(encode_request(pushes(b"x")) * count) == [pushes(*[b"x"] * size) for size in sizes]


def test_a_run_is_handed_out_without_waiting_for_the_unfinished_request_behind_it() -> None:
    source = client()
    wire = encode_request(pushes(b"a", b"bb", b"ccc"))
    assert list(source.receive(wire[:-1], 0.0)) == [pushes(b"a", b"bb")]
    assert source.buffered == HEAD_BYTES + 2
    assert list(source.receive(wire[-1:], 0.0)) == [pushes(b"ccc")]


def test_a_bad_length_ends_a_run_and_spoils_nothing_before_or_after_it() -> None:
    wire = encode_request(pushes(b"a", b"b", b"m" * 41, b"c"))
    refused = Refused(Operation.PUSH, ORDERS, "message_too_large", close=False)
    assert asked([wire], TIGHT) == ([pushes(b"a", b"b"), refused, pushes(b"c")], None)
    assert asked(one_by_one(wire), TIGHT) == ([pushes(b"a", b"b"), refused, pushes(b"c")], None)


# --- lengths


@pytest.mark.parametrize(("operation", "code"), CODES.items())
def test_oversized_message_is_refused_and_never_buffered(operation: Operation, code: int) -> None:
    source = ClientConnection(TIGHT)
    assert list(source.receive(request(code, 400), 0.0)) == []
    for _ in range(399):
        assert list(source.receive(b"m", 0.0)) == []
        assert source.buffered == 0
    refused = Refused(operation, ORDERS, "message_too_large", close=False)
    assert list(source.receive(b"m" + GOOD, 0.0)) == [refused, PULL]


@pytest.mark.parametrize(("operation", "code"), CODES.items())
@pytest.mark.parametrize("size", [401, 1 << 31, 0xFFFFFFFF])
def test_message_beyond_the_discard_limit_closes(operation: Operation, code: int, size: int) -> None:
    for chunks in (
        [request(code, size)],
        one_by_one(request(code, size)),
        [request(code, size) + b"m" * 500],
    ):
        source = ClientConnection(TIGHT)
        events = [event for chunk in chunks for event in source.receive(chunk, 0.0)]
        assert events == [Refused(operation, ORDERS, "message_too_large", close=True)]
        assert_over(source, LATE)


@pytest.mark.parametrize("code", [0, 2, 3])
def test_unexpected_message_is_discarded(code: int) -> None:
    source = ClientConnection(TIGHT)
    [plain] = events_of(request(code, 0))
    assert list(source.receive(GOOD + request(code, 40) + b"m", 0.0)) == [PULL]
    for _ in range(38):
        assert (list(source.receive(b"m", 0.0)), source.buffered) == ([], 0)
    assert list(source.receive(b"m" + GOOD, 0.0)) == [plain, PULL]


@pytest.mark.parametrize(("operation", "code"), CODES.items())
@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (bytes(255), "empty_queue_name"),
        (b"\0orders".ljust(255, b"x"), "empty_queue_name"),
        (b"q" * 255, "endless_queue_name"),
    ],
)
def test_a_queue_without_a_name_or_a_name_without_end_is_refused(
    operation: Operation, code: int, field: bytes, reason: str
) -> None:
    echo = ORDERS[:255] + field
    refused = Refused(operation, echo, reason, close=False)
    wire = request(code, 3, echo) + b"abc" + GOOD
    assert asked([wire], TIGHT) == ([refused, PULL], None)
    assert asked(one_by_one(wire), TIGHT) == ([refused, PULL], None)


def test_a_name_of_254_is_the_longest() -> None:
    echo = echo_of(b"s" * 254, b"q" * 254)
    assert events_of(request(2, 0, echo)) == [Pull(echo, b"q" * 254, 1)]
    for sender, queue in ((b"s" * 255, b"q"), (b"s", b"q" * 255), (b"", b"q"), (b"s", b""), (b"s", b"a\0b")):
        with pytest.raises(LocalError):
            echo_of(sender, queue)


# --- operations


@pytest.mark.parametrize("code", [4, 5, 6, 255, 256, 1 << 24, 0xFFFFFFFF])
def test_unknown_operation_is_refused_at_once(code: int) -> None:
    head = code.to_bytes(4, "big")
    for chunks in ([head], one_by_one(head), [head + b"x" * 600]):
        assert asked([GOOD, *chunks]) == ([PULL], "unknown_operation")
    source = client()
    with pytest.raises(PeerError) as caught:
        list(source.receive(head, 0.0))
    assert caught.value.detail == str(code)
    assert_over(source, LATE)


# --- replies


def test_replies_repeat_the_fields_as_they_came() -> None:
    """Check that replies repeat the fields unchanged (5.2)."""
    odd = bytes(range(255)) * 2
    assert encode_replies(odd, 3) == encode_reply(Operation.OK, odd) * 3
    records = [encode_record(body) for body in (b"a", b"", b"ccc")]
    wanted = [encode_reply(Operation.OK, odd, body) for body in (b"a", b"", b"ccc")]
    assert encode_deliveries(odd, records) == b"".join(wanted)
    assert encode_reply(Operation.ERROR, odd, b"empty")[4:514] == odd
    assert encode_refusal(Refused(Operation.PULL, odd, "message_too_large", True))[4:514] == odd


def test_only_replies_are_replies() -> None:
    for operation in CODES:
        with pytest.raises(LocalError):
            encode_reply(operation, ORDERS)
        with pytest.raises(ValueError):
            parse_reply(request(operation, 0))
    with pytest.raises(LocalError):
        encode_reply(Operation.OK, ORDERS[1:])
    assert parse_reply(encode_reply(Operation.OK, ORDERS)) == (Operation.OK, b"checkin", b"orders", 0)


# --- time, and the end


def test_a_request_may_stay_unfinished_for_the_request_timeout() -> None:
    wire = encode_request(pushes(b"ab"))
    for size in (1, 3, 4, 5, 517, 518, 519):
        source = client()
        list(source.receive(wire[:size], 5.0))
        assert source.deadline() == 37.0
        assert list(source.on_time(36.5)) == []
        with pytest.raises(PeerError, match="request_timeout"):
            list(source.on_time(37.0))
        assert_over(source, LATE)


def test_a_message_thrown_away_counts_from_its_requests_first_octet() -> None:
    source = ClientConnection(replace(PATIENT, max_message_bytes=1))
    wire = encode_request(pushes(b"abcd"))
    list(source.receive(wire[:10], 1.0))
    list(source.receive(wire[10:-2], 2.0))
    list(source.receive(wire[-2:-1], 3.0))
    assert (source.deadline(), source.buffered) == (33.0, 0)
    assert [type(event) for event in source.receive(wire[-1:] + b"\0", 4.0)] == [Refused]
    assert source.deadline() == 36.0
    source.restart_clock(10.0)
    assert source.deadline() == 42.0


def test_idle_between_requests_is_allowed_for_ever() -> None:
    source = client()
    assert list(source.receive(GOOD, 0.0)) == [PULL]
    source.restart_clock(5.0)
    assert (source.deadline(), list(source.on_time(1e9))) == (None, [])
    assert list(source.receive(GOOD, 1e9)) == [PULL]


def test_fin_inside_a_request_cuts_it_short() -> None:
    wire = encode_request(pushes(b"ab"))
    for size in range(1, len(wire)):
        assert asked([GOOD + wire[:size]]) == ([PULL], "truncated")
    assert asked([request(1, 41) + b"m" * 40], TIGHT) == ([], "truncated")
    assert asked([request(2, 40) + b"m" * 39], TIGHT) == ([], "truncated")
    source = client()
    list(source.receive(wire, 0.0))
    assert list(source.receive_eof(0.0)) == []
    assert_over(source, LATE)
