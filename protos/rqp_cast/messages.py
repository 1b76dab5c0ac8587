"""The seven structures, as what they say (rqp_cast.md 2). Numbers are unsigned; an `address` of None is left out."""

from dataclasses import dataclass

from protos.rqp_cast.wire import U32, Quality, Reason, Result


@dataclass(frozen=True, slots=True)
class QuestionMsg:
    """QUESTION_MSG: who has a queue with this key? The one datagram; it always has its address."""

    address: str
    key: int


@dataclass(frozen=True, slots=True)
class AcceptSenderMsg:
    """ACCEPT_SENDER_MSG: I have, it is reserved for you, and these ports are open for you."""

    address: str | None
    accept_port: int
    key: int
    data_port: int


@dataclass(frozen=True, slots=True)
class AcceptReceiverMsg:
    """ACCEPT_RECEIVER_MSG: I have chosen you; uncertain messages carry ZERO_ID in port and id."""

    address: str | None
    endtransmission_port: int
    id: int
    msg_type: Quality


@dataclass(frozen=True, slots=True)
class DataMsg:
    """DATA_MSG: the message. `record` is `u32 message_size, data`, exactly as it travels: the store keeps it so."""

    address: str | None
    key: int
    record: bytes

    @property
    def data(self) -> bytes:
        return self.record[U32.size :]


@dataclass(frozen=True, slots=True)
class EndTransmissionMsg:
    """END_TRANSMISSION_MSG: what became of the certain message `id`."""

    address: str | None
    id: int
    result: Result


@dataclass(frozen=True, slots=True)
class TMsg:
    """T_MSG, as programs put it into a transmission queue. Its id says nothing to us: we give our own (2.3)."""

    msg_type: Quality
    id: int
    key: int
    data: bytes


@dataclass(frozen=True, slots=True)
class GarbageMsg:
    """GARBAGE_MSG: a dead letter."""

    data: bytes
    reason: Reason
