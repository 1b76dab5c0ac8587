"""What a sending MCA's machine wants done: to be carried out in order (rqp_mca.md 3)."""

from dataclasses import dataclass
from enum import Enum

Peer = str  # a receiving MCA, as whoever runs the machine calls it


class Failure(Enum):
    """Why a message did not get through; the values are labels for metrics and dead letters."""

    NO_RECEIVER = "no_receiver"  # nobody said that the queue is available
    NOT_RESERVED = "not_reserved"  # some did, but none reserved it
    DATA_TIMEOUT = "data_timeout"  # no confirm in time
    CONNECTION_LOST = "connection_lost"  # before the confirm: refused, or gone
    PROTOCOL_ERROR = "protocol_error"  # before the confirm: closed by us, as what came was no RQP/MCA
    UNEXPECTED_CONFIRM = "unexpected_confirm"  # something else than the confirm, or one before its data


@dataclass(frozen=True, slots=True)
class AskAvailability:
    """Send MSG_QUEUE_AVAILABLE_REQUEST on a new connection to `peer`, kept for all that follows (3.3)."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class RequestQueue:
    """Send MSG_QUEUE_REQUEST on the connection to `peer`."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class SendData:
    """Send MSG_DATA of `count` messages, from place `start` of the line on; 0 is the message at its front."""

    peer: Peer
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Remove:
    """The first `count` messages of the line are done: confirmed, or UNRELIABLE and sent."""

    count: int


@dataclass(frozen=True, slots=True)
class ToDeadLetters:
    """The UNRELIABLE message at the front goes to the dead letters, and leaves the line."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """A RELIABLE message did not get through: it stays first, and is tried again at `retry_at` (3.1).

    `unconfirmed` messages had been sent: they are unsent again, and may arrive twice.
    """

    failure: Failure
    retry_at: float
    unconfirmed: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection to `peer`, and report nothing of it any more, neither confirms nor its loss."""

    peer: Peer


Action = AskAvailability | RequestQueue | SendData | Remove | ToDeadLetters | ReportFailure | Close
