"""Encode requests, for clients (tmq.md 3, 4).

Names are not checked, as the server does that. Only the codes of the transaction verbs depend on the dialect.
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
    """Encode CREATE; the reply is a status."""
    return _encode_named(Operation.CREATE, name)


def encode_delete(name: bytes) -> bytes:
    """Encode DELETE; the reply is a status."""
    return _encode_named(Operation.DELETE, name)


def encode_open(name: bytes) -> bytes:
    """Encode OPEN; the reply is 64 bytes, an MQID or nil."""
    return _encode_named(Operation.OPEN, name)


def encode_close(mqid: bytes) -> bytes:
    """Encode CLOSE; the reply is a status."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.CLOSE, mqid)


def encode_enq(mqid: bytes, body: bytes) -> bytes:
    """Encode ENQ; the reply is a status, whose polarity depends on the dialect."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.ENQ, mqid) + encode_record(body)


def encode_dnq(mqid: bytes) -> bytes:
    """Encode DNQ; the reply is a length and a body, or EMPTY."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.DNQ, mqid)


def encode_select(mqid: bytes) -> bytes:
    """Encode SELECT as 9, which is unambiguous (3.1); the reply is a count."""
    return encode_mqid_request(Dialect.DOCUMENT, Operation.SELECT, mqid)


def encode_ts(dialect: Dialect) -> bytes:
    """Encode TS, in the document dialect as the unambiguous 8 (3.1); the reply is a status."""
    return encode_code(dialect, Operation.TS)


def encode_te(dialect: Dialect) -> bytes:
    """Encode TE; the reply is a status."""
    return encode_code(dialect, Operation.TE)


def encode_ta(dialect: Dialect) -> bytes:
    """Encode TA; the reply is a status."""
    return encode_code(dialect, Operation.TA)


def encode_request(dialect: Dialect, request: Request) -> bytes:
    """Encode an event; a run of n requests becomes n requests."""
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
