"""Numbers and limits of RQP/MCA; `layouts` has the profiles (rqp_mca.md 1)."""

import enum
from dataclasses import dataclass
from typing import Final

RQP_PORT: Final = 11311  # TCP, of receiving agents
MAX_U32 = (1 << 32) - 1  # the largest queue_id
MAX_UINT4 = 15


class Profile(enum.Enum):
    """How wide a uint4 is on the wire (1.2)."""

    PACKED = "packed"  # 4 bits, as the document has it
    OCTET = "octet"  # one octet
    WORD = "word"  # four octets


class MessageId(enum.IntEnum):
    """The document's messages and their `msg_id` (1.3)."""

    DATA = 1  # a message for a queue
    DATA_CONFIRM = 2  # the message is in the queue
    QUEUE_AVAILABLE_REQUEST = 3  # is the queue available?
    QUEUE_AVAILABLE_CONFIRM = 4  # it is
    QUEUE_REQUEST = 5  # reserve the queue for the sender
    QUEUE_CONFIRM = 6  # it is reserved


class MessageType(enum.IntEnum):
    """The kind of a message: confirmed by its receiver or not (1.3)."""

    RELIABLE = 0  # kept until its receiver confirms
    UNRELIABLE = 1  # sent once


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a connection accepts (1.5, 2.4)."""

    max_message_bytes: int = 1 << 20  # of a body; longer ones close the connection
    request_timeout_s: float = 30.0  # how long a message may stay unfinished on the wire
