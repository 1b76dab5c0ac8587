"""The actions that a sending MCA wants, to be carried out in order (rqp_mca.md 3)."""

from dataclasses import dataclass
from enum import Enum

Peer = str  # the caller's name of a receiving MCA


class Failure(Enum):
    """Why a message was not delivered; the values are labels for metrics and dead letters."""

    NO_RECEIVER = "no_receiver"  # no receiver has the queue available
    NOT_RESERVED = "not_reserved"  # some have it, but none reserved it
    DATA_TIMEOUT = "data_timeout"  # no confirm in time
    CONNECTION_LOST = "connection_lost"  # before the confirm: refused, or gone
    PROTOCOL_ERROR = "protocol_error"  # before the confirm: closed by us, as the peer broke the protocol
    # another message than the confirm, or a confirm before its data
    UNEXPECTED_CONFIRM = "unexpected_confirm"


@dataclass(frozen=True, slots=True)
class AskAvailability:
    """Send MSG_QUEUE_AVAILABLE_REQUEST on a new connection to `peer`, kept for all that follows (3.3)."""

    peer: Peer  # the caller's name of it


@dataclass(frozen=True, slots=True)
class RequestQueue:
    """Send MSG_QUEUE_REQUEST on the connection to `peer`."""

    peer: Peer  # the caller's name of it


@dataclass(frozen=True, slots=True)
class SendData:
    """Send MSG_DATA of `count` pending messages, from index `start` on; 0 is the oldest."""

    peer: Peer  # the caller's name of it
    start: int  # index of the first one; 0 is the oldest
    count: int  # of messages


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the first `count` pending messages: confirmed, or UNRELIABLE and sent."""

    count: int  # of messages


@dataclass(frozen=True, slots=True)
class ToDeadLetters:
    """Move the first pending message, an UNRELIABLE one, to the dead letters."""

    failure: Failure  # why it was not delivered


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Report that a RELIABLE message was not delivered: it stays first, and is retried at `retry_at` (3.1).

    `unconfirmed` messages had been sent: they are unsent again, and may arrive twice.
    """

    failure: Failure  # why it was not delivered
    retry_at: float  # seconds, of the clock of `now`
    unconfirmed: int  # messages that had been sent


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection to `peer`, and report neither its confirms nor its loss any more."""

    peer: Peer  # the caller's name of it


# what a `Sender` returns
Action = AskAvailability | RequestQueue | SendData | Remove | ToDeadLetters | ReportFailure | Close
