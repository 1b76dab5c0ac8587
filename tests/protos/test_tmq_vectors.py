"""Test the vectors at codec level, both directions: whole, byte by byte, split everywhere, each byte changed."""

import json
from pathlib import Path

import pytest

from protos.tmq import (
    EMPTY,
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
    encode_count,
    encode_record,
    encode_request,
    encode_status,
    nil_mqid,
    parse_count,
    parse_length,
    parse_mqid,
    parse_status,
    reply_bytes,
)
from protos.types import PeerError
from tests.protos.feeding import cut, one_by_one
from tests.protos.tmq_samples import merged, outcome

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "tmq.json").read_text())
OPERATIONS: dict[type[Event], Operation] = {
    Create: Operation.CREATE,
    Delete: Operation.DELETE,
    Open: Operation.OPEN,
    Close: Operation.CLOSE,
    Enqueue: Operation.ENQ,
    Dequeue: Operation.DNQ,
    Select: Operation.SELECT,
    TransactionStart: Operation.TS,
    TransactionEnd: Operation.TE,
    TransactionAbort: Operation.TA,
}
# The requests of each conversation, one operation an exchange, written by hand.
MEANING = {
    "create, open, put, count, take, count, close, delete": (
        "CREATE OPEN ENQ SELECT DNQ SELECT DNQ CLOSE DELETE"
    ),
    "create twice": "CREATE CREATE",
    "open unknown": "OPEN",
    "empty name": "CREATE OPEN",
    "not open on this connection": "CREATE ENQ DNQ SELECT CLOSE",
    "after close": "CREATE OPEN CLOSE ENQ DNQ CLOSE",
    "binary and empty bodies keep their bytes and order": "CREATE OPEN ENQ ENQ DNQ DNQ",
    "commit": "CREATE OPEN TS ENQ ENQ SELECT DNQ TE SELECT DNQ DNQ",
    "abort returns in order to the front": "CREATE OPEN ENQ ENQ ENQ TS DNQ DNQ ENQ TA SELECT DNQ DNQ DNQ DNQ",
    "transaction verbs out of place": "TE TA TS TS TE TE",
    "lone five starts a transaction": "CREATE OPEN TS ENQ DNQ TE DNQ",
    "reference numbering and polarity": "CREATE OPEN ENQ SELECT TS DNQ TA DNQ TS ENQ TE DNQ DNQ",
    "reference nil": "OPEN",
    "transactions as on the original server": (
        "TE TA CREATE OPEN TS ENQ ENQ SELECT DNQ DNQ DNQ TA SELECT TS DNQ TE TE SELECT DNQ SELECT"
    ),
}

every_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])


def dialect_of(vector: dict) -> Dialect:
    return Dialect(vector["dialect"])


def sends_of(vector: dict) -> list[bytes]:
    return [bytes.fromhex(exchange["send"]) for exchange in vector["conversation"]]


def event_of(send: bytes, dialect: Dialect) -> Event:
    """Return the one event of one exchange; FIN after it settles the meaning of a lone 5."""
    (event,), error = outcome(Connection(dialect, Limits()), [send])
    assert error is None
    return event


def operation_of(event: Event) -> Operation:
    return event.operation if isinstance(event, Refused) else OPERATIONS[type(event)]


@every_vector
def test_request_vector_is_decoded(vector: dict) -> None:
    found = [operation_of(event_of(send, dialect_of(vector))).name for send in sends_of(vector)]
    assert found == MEANING[vector["name"]].split()  # tmq.md 3, 4


@every_vector
def test_each_request_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    for send in sends_of(vector):
        event = event_of(send, dialect_of(vector))
        if isinstance(event, Request) and send != b"\5":  # 3.1: our own clients send TS as 8
            assert encode_request(dialect_of(vector), event) == send


@every_vector
def test_each_reply_parses_and_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    dialect = dialect_of(vector)
    for exchange in vector["conversation"]:
        reply = bytes.fromhex(exchange["expect"])
        operation = operation_of(event_of(bytes.fromhex(exchange["send"]), dialect))
        head = reply[: reply_bytes(dialect, operation)]
        assert reencoded(dialect, operation, head, reply[len(head) :]) == reply  # 3, 4


def reencoded(dialect: Dialect, operation: Operation, head: bytes, body: bytes) -> bytes:
    match operation:
        case Operation.OPEN:
            return parse_mqid(head) or nil_mqid(dialect)
        case Operation.SELECT:
            return encode_count(dialect, parse_count(dialect, head))
        case Operation.DNQ:
            length = parse_length(head)
            assert len(body) == (length or 0)
            return EMPTY if length is None else encode_record(body)
        case _:
            return encode_status(dialect, operation, parse_status(dialect, operation, head))


@every_vector
def test_the_cut_of_the_bytes_does_not_matter(vector: dict) -> None:
    # tmq.md 1.1
    dialect = dialect_of(vector)
    data = b"".join(sends_of(vector))
    whole = outcome(Connection(dialect, Limits()), [data])
    assert whole == (merged(event_of(send, dialect) for send in sends_of(vector)), None)
    assert outcome(Connection(dialect, Limits()), one_by_one(data)) == whole
    for place in range(len(data) + 1):
        assert outcome(Connection(dialect, Limits()), cut(data, [place])) == whole, place


@pytest.mark.parametrize("dialect", Dialect)
def test_with_any_byte_changed_only_a_peer_error_comes_out(dialect: Dialect) -> None:
    limits = Limits(max_message_bytes=256, max_discard_bytes=1_000)
    sends = {send for vector in VECTORS for send in sends_of(vector) if dialect_of(vector) is dialect}
    follow_up = b"0" * 512  # completes any input that the changed byte made it wait for, or is no valid code
    for send in sends:
        for place in range(len(send)):
            before, after = send[:place], send[place + 1 :]
            for value in range(256):
                check_survives(Connection(dialect, limits), before + bytes([value]) + after, follow_up)


def check_survives(connection: Connection, *chunks: bytes) -> None:
    try:
        for chunk in chunks:
            for _ in connection.receive(chunk, 0.0):
                pass
            assert connection.buffered < 1 + 64 + 4 + 256  # 7.1: a head and the largest acceptable body
        for _ in connection.receive_eof(0.0):
            pass
    except PeerError:
        pass
    assert connection.buffered == 0
    assert connection.deadline() is None
