"""A client's side: requests as bytes (tmq.md 3, 4).

Names are encoded as they are, even empty or too long: it is the server that judges them. All codes but those
of the transaction verbs are the same in both dialects.
"""

from typing import assert_never

from protos.runs import encode_record
from protos.tmq.events import (
    Close,
    Create,
    Delete,
    Dequeue,
    Enqueue,
    Open,
    Request,
    Select,
    TransactionAbort,
    TransactionEnd,
    TransactionStart,
)
from protos.tmq.wire import Dialect, Operation, encode_code, encode_mqid_request


def encode_create(name: bytes) -> bytes:
    """CREATE `name`; answered by a status."""
    return _encode_named(Operation.CREATE, name)


def encode_delete(name: bytes) -> bytes:
    """DELETE `name`; answered by a status."""
    return _encode_named(Operation.DELETE, name)


def encode_open(name: bytes) -> bytes:
    """OPEN `name`; answered by 64 bytes, an MQID or nil."""
    return _encode_named(Operation.OPEN, name)


def encode_close(mqid: bytes) -> bytes:
    """CLOSE; answered by a status."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.CLOSE, mqid)


def encode_enq(mqid: bytes, body: bytes) -> bytes:
    """ENQ one message; answered by a status whose polarity depends on the dialect."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.ENQ, mqid) + encode_record(body)


def encode_dnq(mqid: bytes) -> bytes:
    """DNQ one message; answered by a length and a body, or EMPTY."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.DNQ, mqid)


def encode_select(mqid: bytes) -> bytes:
    """SELECT as 9, which is never mistaken for a DNQ (3.1); answered by a count."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.SELECT, mqid)


def encode_ts(dialect: Dialect) -> bytes:
    """Transaction start, in the document dialect as 8, which needs no grace (3.1); answered by a status."""
    return encode_code(dialect, Operation.TS)


def encode_te(dialect: Dialect) -> bytes:
    """Transaction end; answered by a status."""
    return encode_code(dialect, Operation.TE)


def encode_ta(dialect: Dialect) -> bytes:
    """Transaction abort; answered by a status."""
    return encode_code(dialect, Operation.TA)


def encode_request(dialect: Dialect, request: Request) -> bytes:
    """The bytes that parse to `request`: a run of n requests is n requests long."""
    match request:
        case Create(name):
            return encode_create(name)
        case Delete(name):
            return encode_delete(name)
        case Open(name):
            return encode_open(name)
        case Close(mqid):
            return encode_close(mqid)
        case Enqueue(mqid, records):
            head = encode_mqid_request(dialect, Operation.ENQ, mqid)
            return b"".join(head + record for record in records)
        case Dequeue(mqid, count):
            return encode_dnq(mqid) * count
        case Select(mqid, count):
            return encode_select(mqid) * count
        case TransactionStart():
            return encode_ts(dialect)
        case TransactionEnd():
            return encode_te(dialect)
        case TransactionAbort():
            return encode_ta(dialect)
        case _:
            assert_never(request)


def _encode_named(operation: Operation, name: bytes) -> bytes:
    return encode_code(Dialect.DOCUMENT, operation) + encode_record(name)
