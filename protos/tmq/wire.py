"""Define the layout of TMQ: dialects, operations and their codes, sizes, limits (tmq.md 1 to 4)."""

import enum
import hashlib
import struct
from dataclasses import dataclass

from protos.runs import U32
from protos.types import LocalError

I32 = struct.Struct(">i")  # a DNQ reply's length; a reference SELECT's count
I64 = struct.Struct(">q")  # a document SELECT's count

MQID_BYTES = 64  # 2.2
NAME_HEAD_BYTES = 1 + U32.size  # CREATE, DELETE, OPEN: code, N
MQID_HEAD_BYTES = 1 + MQID_BYTES  # CLOSE, DNQ, SELECT: code, MQID; nothing follows
ENQ_HEAD_BYTES = 1 + MQID_BYTES + U32.size  # ENQ: code, MQID, N

LONE_FIVE = 5  # in the document dialect DNQ, TS and, in print, SELECT (3.1)
MQID_STARTS = frozenset(b"0123456789abcdef<")  # what may follow a 5 that is not a TS (3.1)


class Dialect(enum.Enum):
    """A set of codes, polarities and reply sizes."""

    DOCUMENT = "document"  # as printed (section 3)
    REFERENCE = "reference"  # as the author's own server behaves (section 4)


class Operation(enum.Enum):
    """The operation of a request; the values are labels in metrics."""

    CREATE = "create"  # make a queue, by name
    DELETE = "delete"  # remove a queue, by name
    OPEN = "open"  # get the MQID of a queue, by name
    CLOSE = "close"  # release an MQID
    ENQ = "enq"  # put one message
    DNQ = "dnq"  # take one message, if there is one
    TS = "ts"  # start a transaction
    TE = "te"  # end it: commit
    TA = "ta"  # abort it
    SELECT = "select"  # count the ready messages


_COMMON_CODES = {
    0: Operation.CREATE,
    1: Operation.DELETE,
    2: Operation.OPEN,
    3: Operation.CLOSE,
    4: Operation.ENQ,
    5: Operation.DNQ,
    9: Operation.SELECT,
}
CODES = {
    Dialect.DOCUMENT: {**_COMMON_CODES, 6: Operation.TE, 7: Operation.TA, 8: Operation.TS},
    Dialect.REFERENCE: {**_COMMON_CODES, 6: Operation.TS, 7: Operation.TE, 8: Operation.TA},
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a connection (2.1, 3.1, 7.1, 7.3)."""

    max_message_bytes: int = 1 << 20  # longer bodies are refused
    # longer ones are refused without reading them, and the connection is closed
    max_discard_bytes: int = 16 << 20
    max_name_bytes: int = 255  # longer names are refused
    # longer ones are refused without reading them, and the connection is closed
    max_name_discard_bytes: int = 64 << 10
    lone_five_grace_s: float = 0.2  # a 5 followed by silence for this long is a TS; 0: never
    request_timeout_s: float = 30.0  # how long a request may stay unfinished
    code5_mqid_is_select: bool = False  # 5 + MQID is SELECT, not DNQ (document dialect only)


def mqid_of(name: bytes) -> bytes:
    """Return the MQID of a queue: the SHA-256 of its name as 64 lower-case hex digits (2.2)."""
    return hashlib.sha256(name).hexdigest().encode()


def encode_code(dialect: Dialect, operation: Operation) -> bytes:
    """Return the 1-byte code of an operation; never the ambiguous 5 for TS or SELECT (3.1)."""
    return _ENCODED_CODES[dialect][operation]


def encode_mqid_request(dialect: Dialect, operation: Operation, mqid: bytes) -> bytes:
    """Encode a code and an MQID, 65 bytes. Raises LocalError unless the MQID has 64 bytes."""
    if len(mqid) != MQID_BYTES:
        raise LocalError(f"an MQID has {MQID_BYTES} bytes, not {len(mqid)}")
    return encode_code(dialect, operation) + mqid


_ENCODED_CODES = {
    dialect: {operation: bytes([code]) for code, operation in codes.items()}
    for dialect, codes in CODES.items()
}
