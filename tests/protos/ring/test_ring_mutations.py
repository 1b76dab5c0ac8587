"""Change the octets of every vector: the only error is PeerError (ring.md 2 to 5)."""

import pytest

from protos.ring import (
    HEAD_BYTES,
    Acks,
    ClientConnection,
    Connection,
    Limits,
    Refused,
    Unusable,
    encode_beacon,
    encode_frame,
    encode_message,
    encode_record,
    encode_request,
    parse_beacon,
    parse_frame,
    parse_reply,
)
from protos.types import PeerError
from tests.protos.ring.samples import LARGEST_MESSAGE, VECTORS, name, wire_of

LIMITS = Limits(max_message_bytes=256, max_discard_bytes=300)
CORNERS = (0x00, 0x01, 0x30, 0x41, 0x7F, 0x80, 0xFE, 0xFF)
INSIDE = 16  # octets tried within runs of equal octets


def changes(wire: bytes) -> list[tuple[int, int]]:
    """Return places and new values: every value at octets that differ from a neighbour.

    Names and bodies are padded with hundreds of equal octets: within such runs, corner values at some places.
    """
    same = [place for place in range(1, len(wire) - 1) if len(set(wire[place - 1 : place + 2])) == 1]
    edges = sorted({*range(len(wire))} - {*same})
    some = same[:: max(1, len(same) // INSIDE)]
    return [(place, value) for place in edges for value in range(256)] + [
        (place, value) for place in some for value in CORNERS
    ]


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_with_any_octet_changed_it_means_something_else_or_is_refused(vector: dict) -> None:
    wire, check = wire_of(vector), CHECKS[vector["direction"]]
    for place, value in changes(wire):
        changed = wire[:place] + bytes([value]) + wire[place + 1 :]
        try:
            check(changed)
        except PeerError:
            pass
        except Exception:
            print(f"place {place}, value {value}")
            raise


def check_link(wire: bytes) -> None:
    source = Connection(LIMITS)
    try:
        for message in source.receive(wire, 0.0):
            if not isinstance(message, Unusable):
                assert encode_message(message) in wire
        assert source.buffered < LARGEST_MESSAGE
        list(source.receive_eof(0.0))
    finally:
        assert (source.buffered, source.deadline()) == (0, None)
        check_frame(wire[6:])


def check_frame(payload: bytes) -> None:
    frame = parse_frame(payload)
    if frame is not None:
        again = encode_frame(frame)
        assert parse_frame(again) == frame
        assert again[HEAD_BYTES:] == payload[HEAD_BYTES:]


def check_acks(wire: bytes) -> None:
    assert sum(Acks().receive(wire)) == len(wire)


def check_beacon(wire: bytes) -> None:
    assert encode_beacon(parse_beacon(wire)) == wire


def check_client(wire: bytes) -> None:
    source = ClientConnection(LIMITS)
    try:
        for event in source.receive(wire, 0.0):
            if not isinstance(event, Refused):
                again = encode_request(event)
                assert again[: HEAD_BYTES - 4] == wire[: HEAD_BYTES - 4]
                assert wire.startswith(again) or wire[3] != 1
        assert source.buffered <= HEAD_BYTES + 256
        list(source.receive_eof(0.0))
    finally:
        assert (source.buffered, source.deadline()) == (0, None)


def check_reply(wire: bytes) -> None:
    try:
        head = parse_reply(wire[:HEAD_BYTES])
    except ValueError:
        return
    assert encode_record(wire[HEAD_BYTES:]) == wire[HEAD_BYTES - 4 :] or head.size != len(wire) - HEAD_BYTES


CHECKS = {
    "link": check_link,
    "link back": check_acks,
    "UDP": check_beacon,
    "client": check_client,
    "client back": check_reply,
}
