"""The seven structures (rqp_cast.md 2). Numbers are unsigned; an `address` of None is left out."""

from dataclasses import dataclass

from protos.rqp_cast.wire import U32, Quality, Reason, Result


@dataclass(frozen=True, slots=True)
class QuestionMsg:
    """QUESTION_MSG: which agents have a queue with this key? The one datagram; it always has its address."""

    address: str
    key: int


@dataclass(frozen=True, slots=True)
class AcceptSenderMsg:
    """ACCEPT_SENDER_MSG: the queue is here and reserved for the sender, and these ports are open for it."""

    address: str | None
    accept_port: int
    key: int
    data_port: int


@dataclass(frozen=True, slots=True)
class AcceptReceiverMsg:
    """ACCEPT_RECEIVER_MSG: the receiver is chosen; uncertain messages carry ZERO_ID in port and id."""

    address: str | None
    endtransmission_port: int
    id: int
    msg_type: Quality


@dataclass(frozen=True, slots=True)
class DataMsg:
    """DATA_MSG: the message. `record` is `u32 message_size, data`, exactly as it is sent and stored."""

    address: str | None
    key: int
    record: bytes

    @property
    def data(self) -> bytes:
        """The data without its size."""
        return self.record[U32.size :]


@dataclass(frozen=True, slots=True)
class EndTransmissionMsg:
    """END_TRANSMISSION_MSG: the outcome of the certain message `id`."""

    address: str | None
    id: int
    result: Result


@dataclass(frozen=True, slots=True)
class TMsg:
    """T_MSG, as programs put it into a transmission queue. Its id is ignored: the bridge gives its own (2.3)."""

    msg_type: Quality
    id: int
    key: int
    data: bytes


@dataclass(frozen=True, slots=True)
class GarbageMsg:
    """GARBAGE_MSG: a dead letter."""

    data: bytes
    reason: Reason
