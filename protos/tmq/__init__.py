"""TMQ, the transactional message queue over TCP, as `protos/tmq.md` numbers it.

`wire` is the layout on one screen, `events` is what a connection hands out, `readers` turn bytes into
events, `connection` keeps one client's state, `replies` and `requests` are the bytes of answers and of a
client's questions.
"""

from protos.runs import MAX_RUN, encode_record
from protos.tmq.connection import Connection
from protos.tmq.events import (
    Close,
    Create,
    Delete,
    Dequeue,
    Enqueue,
    Event,
    Open,
    Refused,
    Request,
    Select,
    TransactionAbort,
    TransactionEnd,
    TransactionStart,
)
from protos.tmq.replies import (
    EMPTY,
    UNUSABLE,
    encode_count,
    encode_failure,
    encode_status,
    nil_mqid,
    parse_count,
    parse_length,
    parse_mqid,
    parse_status,
    reply_bytes,
)
from protos.tmq.requests import (
    encode_close,
    encode_create,
    encode_delete,
    encode_dnq,
    encode_enq,
    encode_open,
    encode_request,
    encode_select,
    encode_ta,
    encode_te,
    encode_ts,
)
from protos.tmq.wire import MQID_BYTES, Dialect, Limits, Operation, mqid_of

__all__ = [
    "EMPTY",
    "MAX_RUN",
    "MQID_BYTES",
    "UNUSABLE",
    "Close",
    "Connection",
    "Create",
    "Delete",
    "Dequeue",
    "Dialect",
    "Enqueue",
    "Event",
    "Limits",
    "Open",
    "Operation",
    "Refused",
    "Request",
    "Select",
    "TransactionAbort",
    "TransactionEnd",
    "TransactionStart",
    "encode_close",
    "encode_count",
    "encode_create",
    "encode_delete",
    "encode_dnq",
    "encode_enq",
    "encode_failure",
    "encode_open",
    "encode_record",
    "encode_request",
    "encode_select",
    "encode_status",
    "encode_ta",
    "encode_te",
    "encode_ts",
    "mqid_of",
    "nil_mqid",
    "parse_count",
    "parse_length",
    "parse_mqid",
    "parse_status",
    "reply_bytes",
]
