"""The seven structures (rqp_cast.md 2). Numbers are unsigned; an `address` of None is left out."""

from dataclasses import dataclass

from protos.rqp_cast.wire import U32, Quality, Reason, Result


@dataclass(frozen=True, slots=True)
class QuestionMsg:
    """QUESTION_MSG: which agents have a queue with this key? The one datagram; it always has its address."""

    address: str  # IPv4, of the sending agent
    key: int  # of the queue, u32


@dataclass(frozen=True, slots=True)
class AcceptSenderMsg:
    """ACCEPT_SENDER_MSG: the queue is here and reserved for the sender, and these ports are open for it."""

    address: str | None  # IPv4, of the receiving agent
    accept_port: int  # TCP, for ACCEPT_RECEIVER_MSG
    key: int  # of the queue, u32
    data_port: int  # TCP, for DATA_MSG


@dataclass(frozen=True, slots=True)
class AcceptReceiverMsg:
    """ACCEPT_RECEIVER_MSG: the receiver is chosen; uncertain messages carry ZERO_ID in port and id."""

    address: str | None  # IPv4, of the sending agent
    endtransmission_port: int  # TCP, for END_TRANSMISSION_MSG
    id: int  # u32, the sending agent's own
    msg_type: Quality  # certain or uncertain


@dataclass(frozen=True, slots=True)
class DataMsg:
    """DATA_MSG: the message. `record` is `u32 message_size, data`, exactly as it is sent and stored."""

    address: str | None  # IPv4, of the sending agent
    key: int  # of the queue, u32
    record: bytes  # `u32 message_size, data`

    @property
    def data(self) -> bytes:
        """The data without its size."""
        return self.record[U32.size :]


@dataclass(frozen=True, slots=True)
class EndTransmissionMsg:
    """END_TRANSMISSION_MSG: the outcome of the certain message `id`."""

    address: str | None  # IPv4, of the receiving agent
    id: int  # of the message, u32
    result: Result  # whether it was inserted


@dataclass(frozen=True, slots=True)
class TMsg:
    """T_MSG, as programs put it into a transmission queue. Its id is ignored: the bridge gives its own (2.3)."""

    msg_type: Quality  # certain or uncertain
    id: int  # u32, ignored
    key: int  # of the queue, u32
    data: bytes  # the body


@dataclass(frozen=True, slots=True)
class GarbageMsg:
    """GARBAGE_MSG: a dead letter."""

    data: bytes  # the body
    reason: Reason  # why it is a dead letter
