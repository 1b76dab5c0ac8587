"""Define the events of a connection: one per request, or per run of like requests (tmq.md 3)."""

from dataclasses import dataclass

from protos.tmq.wire import Operation


@dataclass(frozen=True, slots=True)
class Create:
    """CREATE: `name` has 1 to `max_name_bytes` bytes, any bytes."""

    name: bytes  # 1 to `max_name_bytes` bytes, any bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE: `name` as in Create."""

    name: bytes  # 1 to `max_name_bytes` bytes, any bytes


@dataclass(frozen=True, slots=True)
class Open:
    """OPEN: `name` as in Create."""

    name: bytes  # 1 to `max_name_bytes` bytes, any bytes


@dataclass(frozen=True, slots=True)
class Close:
    """CLOSE: `mqid` is 64 bytes as sent, perhaps of no queue."""

    mqid: bytes  # 64 bytes as sent, perhaps of no queue


@dataclass(frozen=True, slots=True)
class Enqueue:
    """1 to MAX_RUN consecutive ENQs of one MQID.

    Each record is `u32 N, N bytes`, exactly as sent: a DNQ's reply is the record itself.
    """

    mqid: bytes  # 64 bytes as sent
    records: list[bytes]  # `u32 N, N bytes` each, exactly as sent


@dataclass(frozen=True, slots=True)
class Dequeue:
    """`count` consecutive DNQs of one MQID, 1 to MAX_RUN; each gets a reply of its own."""

    mqid: bytes  # 64 bytes as sent
    count: int  # 1 to MAX_RUN


@dataclass(frozen=True, slots=True)
class Select:
    """`count` consecutive SELECTs of one MQID, 1 to MAX_RUN; each gets a reply of its own."""

    mqid: bytes  # 64 bytes as sent
    count: int  # 1 to MAX_RUN


@dataclass(frozen=True, slots=True)
class TransactionStart:
    """TS, in any of its spellings (3.1)."""


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """TE: commit."""


@dataclass(frozen=True, slots=True)
class TransactionAbort:
    """TA: roll back."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request to be answered as failed (`encode_failure`); if `close`, the connection is closed after that.

    `reason` is `bad_name`, `name_too_long` (2.1) or `message_too_large` (7.1). Without `close` the whole request was
    consumed; with it nothing after the request's head is parsed.
    """

    operation: Operation  # says which reply of failure the client gets
    reason: str  # `bad_name`, `name_too_long` (2.1) or `message_too_large` (7.1)
    close: bool  # close the connection after the reply


# a request of a client
Request = (
    Create
    | Delete
    | Open
    | Close
    | Enqueue
    | Dequeue
    | Select
    | TransactionStart
    | TransactionEnd
    | TransactionAbort
)
Event = Request | Refused  # what a `Connection` yields
