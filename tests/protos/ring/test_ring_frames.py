"""Queue operations in the ring: limits, distinctions, and payloads that are no frames (ring.md 5.1, 5.3, 5.4)."""

from dataclasses import replace

import pytest

from protos.ring import (
    HEAD_BYTES,
    MAX_FIELD_NAME,
    MAX_RING_MESSAGE,
    MAX_SENDER,
    MAX_USER_SENT,
    Frame,
    Operation,
    encode_frame,
    parse_frame,
    resent,
)
from protos.types import LocalError

ID = bytes(range(1, 17))
PUSH = Frame(Operation.PUSH, b"10.0.0.1:8085", b"orders", b"hello", ID)
OK = Frame(Operation.OK, b"10.0.0.1:8085", b"orders", b"", ID)
SETTLEMENT = replace(OK, settles=True)
MARK = 4 + len(OK.sender) + 1 + len(ID)  # where the settlement's octet is


def test_sizes_are_those_of_the_spec() -> None:
    assert (HEAD_BYTES, MAX_SENDER, MAX_FIELD_NAME, MAX_RING_MESSAGE) == (518, 237, 254, 15865)


@pytest.mark.parametrize("operation", Operation)
def test_the_longest_of_everything_fits(operation: Operation) -> None:
    frame = Frame(operation, b"s" * MAX_SENDER, b"q" * MAX_FIELD_NAME, b"m" * MAX_RING_MESSAGE, ID)
    payload = encode_frame(frame)
    assert len(payload) == MAX_USER_SENT
    assert parse_frame(payload) == frame


@pytest.mark.parametrize("operation", Operation)
def test_the_shortest_of_everything_fits(operation: Operation) -> None:
    frame = Frame(operation, b"s", b"q")
    assert len(encode_frame(frame)) == HEAD_BYTES
    assert parse_frame(encode_frame(frame)) == frame


def test_a_settlement_differs_from_the_ok_to_a_pull_of_an_empty_message() -> None:
    """Check that a settlement differs from the OK to a pull of an empty message (5.4)."""
    assert parse_frame(encode_frame(SETTLEMENT)) == SETTLEMENT
    assert parse_frame(encode_frame(OK)) == OK
    changed = [
        place
        for place, pair in enumerate(zip(encode_frame(OK), encode_frame(SETTLEMENT), strict=True))
        if pair[0] != pair[1]
    ]
    assert changed == [MARK]


@pytest.mark.parametrize(
    "frame",
    [
        PUSH,
        replace(OK, message=b"m"),
        replace(OK, request_id=bytes(16)),
        replace(OK, operation=Operation.ERROR),
    ],
)
def test_only_an_empty_ok_with_id_settles(frame: Frame) -> None:
    """Check that only an empty OK with an id settles (5.4)."""
    payload = encode_frame(frame)
    assert parse_frame(payload[:MARK] + b"\1" + payload[MARK + 1 :]) == frame
    with pytest.raises(LocalError):
        encode_frame(replace(frame, settles=True))


def test_only_kind_1_settles() -> None:
    payload = encode_frame(OK)
    for octet in range(256):
        changed = payload[:MARK] + bytes([octet]) + payload[MARK + 1 :]
        assert parse_frame(changed) == replace(OK, settles=octet == 1)
    rest = 4 + 255 - MARK - 1
    assert parse_frame(payload[: MARK + 1] + b"x" * rest + payload[MARK + 1 + rest :]) == OK
    assert parse_frame(payload[: 4 + 255] + b"orders\0".ljust(255, b"x") + payload[-4:]) == OK


@pytest.mark.parametrize("operation", list(Operation)[:4])
def test_resent_request_is_marked_in_its_frame(operation: Operation) -> None:
    """Check that a resent request is marked in one octet of its frame; marking it twice is harmless (5.3)."""
    frame = replace(PUSH, operation=operation)
    payload = encode_frame(frame)
    again = resent(payload)
    assert parse_frame(again) == replace(frame, resent=True)
    assert again == encode_frame(replace(frame, resent=True)) == resent(again)
    assert [place for place in range(len(payload)) if payload[place] != again[place]] == [MARK]


@pytest.mark.parametrize(
    "frame", [OK, SETTLEMENT, replace(OK, operation=Operation.ERROR), Frame(Operation.PUSH, b"s", b"q")]
)
def test_only_requests_with_id_are_marked_resent(frame: Frame) -> None:
    """Check that only requests with an id are marked as resent (5.3)."""
    payload = encode_frame(frame)
    assert resent(payload) == payload
    at = 4 + len(frame.sender) + 1 + len(ID)
    assert parse_frame(payload[:at] + b"\2" + payload[at + 1 :]) == replace(frame, settles=False)
    with pytest.raises(LocalError):
        encode_frame(replace(frame, resent=True, settles=False))
    assert resent(b"no frame") == b"no frame"


def test_payload_with_wrong_size_is_no_frame() -> None:
    payload = encode_frame(PUSH)
    for size in range(len(payload)):
        assert parse_frame(payload[:size]) is None
    assert parse_frame(payload + b"x") is None


def test_unknown_operation_is_no_frame() -> None:
    for code in (6, 7, 255, 256, 1 << 31, 0xFFFFFFFF):
        assert parse_frame(code.to_bytes(4, "big") + encode_frame(PUSH)[4:]) is None


@pytest.mark.parametrize(
    "frame",
    [
        replace(PUSH, sender=b""),
        replace(PUSH, sender=b"s" * 238),
        replace(PUSH, sender=b"a\0b"),
        replace(PUSH, queue=b""),
        replace(PUSH, queue=b"q" * 255),
        replace(PUSH, queue=b"a\0b"),
        replace(PUSH, message=b"m" * 15866),
        replace(PUSH, request_id=b"i" * 15),
        replace(PUSH, request_id=b"i" * 17),
    ],
)
def test_oversized_field_is_a_local_error(frame: Frame) -> None:
    with pytest.raises(LocalError):
        encode_frame(frame)
