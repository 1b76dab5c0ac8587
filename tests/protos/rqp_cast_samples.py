"""Helpers of the RQP/cast tests: messages, ways to feed a reader, machines in a given state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from protos.rqp_cast import (
    AcceptReceiverMsg,
    AcceptSenderMsg,
    Approve,
    DataMsg,
    DataReader,
    EndTransmissionMsg,
    Kept,
    MessageReader,
    Offer,
    Outgoing,
    Quality,
    QuestionMsg,
    ReceiverSession,
    ReceiverSettings,
    Result,
    Sender,
    SenderSettings,
    accept_receiver_reader,
    accept_sender_reader,
    encode_accept_receiver,
    encode_accept_sender,
    encode_data,
    encode_end_transmission,
    encode_question,
    encode_record,
    end_transmission_reader,
)

KEY = 7
ID = 99
SENDER = "10.0.0.1"
RECEIVER = "10.0.0.2"
OTHER = "10.0.0.3"
OFFER = Offer(RECEIVER, RECEIVER, KEY, 11320, 11321)
CERTAIN = Outgoing(Quality.HIGH_QUALITY, ID)
UNCERTAIN = Outgoing(Quality.LOW_QUALITY, 0)
BOUND = Kept(receiver=RECEIVER, first_whole_at=0.0)
REPEATED = Outgoing(Quality.HIGH_QUALITY, ID, BOUND)
HIGH = AcceptReceiverMsg(SENDER, 11352, ID, Quality.HIGH_QUALITY)
LOW = AcceptReceiverMsg(SENDER, 0, 0, Quality.LOW_QUALITY)
SUCCESS = EndTransmissionMsg(RECEIVER, ID, Result.SUCCESS)
FAILURE = EndTransmissionMsg(RECEIVER, ID, Result.FAILURE)

Travelling = QuestionMsg | AcceptSenderMsg | AcceptReceiverMsg | DataMsg | EndTransmissionMsg


def data_msg(data: bytes = b"hello", key: int = KEY, address: str | None = SENDER) -> bytes:
    """Return an encoded DATA_MSG."""
    return encode_data(DataMsg(address, key, encode_record(data)))


def encode(message: Travelling) -> bytes:
    match message:
        case QuestionMsg():
            return encode_question(message)
        case AcceptSenderMsg():
            return encode_accept_sender(message)
        case AcceptReceiverMsg():
            return encode_accept_receiver(message)
        case DataMsg():
            return encode_data(message)
        case EndTransmissionMsg():
            return encode_end_transmission(message)


def reader_for(message: Travelling, limit: int = 1 << 20) -> MessageReader[Any] | DataReader:
    """Return the reader of such a message."""
    omits = message.address is None
    match message:
        case AcceptSenderMsg():
            return accept_sender_reader(omits)
        case AcceptReceiverMsg():
            return accept_receiver_reader(omits)
        case EndTransmissionMsg():
            return end_transmission_reader(omits)
        case DataMsg():
            return DataReader(message.key, limit, omits)
    raise AssertionError("a datagram")


def read(reader: MessageReader[Any] | DataReader, chunks: Iterable[bytes]) -> list[Any]:
    """Return all events of the reader."""
    return [found for chunk in chunks if (found := reader.receive(chunk)) is not None]


# Machines in a state, all at time 0.0 ---------------------------------------------------------------------------------


def asking(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = Sender(KEY, settings or SenderSettings())
    sender.send(message, 0.0)
    return sender


def approving(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = asking(message, settings)
    assert sender.answered(OFFER, 0.0) == [Approve(OFFER, message.quality, message.id)]
    return sender


def connecting(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = approving(message, settings)
    sender.approved(0.0)
    return sender


def sending(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = connecting(message, settings)
    assert sender.begun(0.0) == []
    return sender


def confirming(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = sending(message, settings)
    assert sender.sent(0.0) == []
    return sender


def broken_off(message: Outgoing = CERTAIN, settings: SenderSettings | None = None) -> Sender:
    sender = sending(message, settings)
    assert sender.failed(0.0) == []
    return sender


def offered(settings: ReceiverSettings | None = None) -> ReceiverSession:
    return ReceiverSession(KEY, SENDER, settings or ReceiverSettings(), 0.0)


def chosen(approval: AcceptReceiverMsg = HIGH, settings: ReceiverSettings | None = None) -> ReceiverSession:
    session = offered(settings)
    assert session.approved(approval, 0.0) == []
    return session


def inserting(
    approval: AcceptReceiverMsg = HIGH, settings: ReceiverSettings | None = None
) -> ReceiverSession:
    session = chosen(approval, settings)
    assert len(session.receive(data_msg(), 0.0)) == 1
    return session
