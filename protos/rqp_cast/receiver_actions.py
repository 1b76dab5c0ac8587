"""The actions that a receiving agent's session wants, and the outcomes of the store (rqp_cast.md 5)."""

import enum
from dataclasses import dataclass

from protos.rqp_cast.wire import Result


class Insertion(enum.Enum):
    """The outcome of an Insert; the values are metric labels."""

    STORED = "stored"  # durably
    DUPLICATE = "duplicate"  # its id was received before, with the same content (5.4)
    CLASH = "clash"  # its id was received before, with other content: an alarm (2.3)
    GONE = "gone"  # the queue no longer exists (5.3)
    FULL = "full"  # the queue is (5.5)
    REFUSED = "refused"  # by the store, for any other reason; nothing was stored and nothing will be
    UNKNOWN = "unknown"  # it is unknown whether it was stored


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert `record` and remember its id, in one step that checks the reservation again; then `inserted` (5.4, 5.5).

    `record` is `u32 message_size, data`. An uncertain message has ZERO_ID: nothing is remembered of it.
    """

    record: bytes  # `u32 message_size, data`
    id: int  # of a certain message, u32; else ZERO_ID
    agent: str  # the sending agent: an IPv4 address


@dataclass(frozen=True, slots=True)
class BuryReceived:
    """Put a message into DEAD.LETTER.Q if there is one (5.2, 5.3).

    `reason` is the label of a Reason, or for an uncertain message that no queue accepted `rejected_full` or `refused`;
    `detail` is a more precise label.
    """

    reason: str  # of the dead letter
    data: bytes  # what came of the message
    detail: str  # a more precise label


@dataclass(frozen=True, slots=True)
class Free:
    """End the session: free the reservation, close what is still open.

    `ports_rest`: no DATA_MSG has come, so a late one must not reach another session on these ports (1.2).
    """

    ports_rest: bool  # True: keep the ports closed for PORT_REST_S


@dataclass(frozen=True, slots=True)
class Confirm:
    """Connect to the sender's endtransmission_port and send END_TRANSMISSION_MSG; on failure do nothing (3.5)."""

    endtransmission_port: int  # TCP, of the sender
    id: int  # of the message, u32
    result: Result  # whether it was inserted


ReceiverAction = Insert | BuryReceived | Free | Confirm  # what a `ReceiverSession` returns
