"""Encode and parse messages (rqp_cast.md 2). Each `parse_*` takes exactly one whole message.

PeerError reasons: `bad_size`, `unknown_type`, `unknown_result`, `zero_port`, `zero_id`.
"""

from collections.abc import Callable
from typing import TypeVar

from protos.rqp_cast.messages import (
    AcceptReceiverMsg,
    AcceptSenderMsg,
    DataMsg,
    EndTransmissionMsg,
    QuestionMsg,
)
from protos.rqp_cast.wire import (
    ACCEPT_RECEIVER,
    ACCEPT_SENDER,
    ADDRESS_BYTES,
    END_TRANSMISSION,
    QUESTION_BYTES,
    U32,
    Quality,
    Result,
    encode_address,
    packed,
    parse_address,
)
from protos.types import LocalError, PeerError

MessageT = TypeVar("MessageT")
Parse = Callable[[bytes, bool], MessageT]


def encode_question(message: QuestionMsg) -> bytes:
    """Encode QUESTION_MSG: 8 bytes, a datagram."""
    return encode_address(message.address) + packed(U32, message.key)


def parse_question(data: bytes) -> QuestionMsg:
    """Parse the QUESTION_MSG of a datagram. PeerError `bad_size`."""
    if len(data) != QUESTION_BYTES:
        raise PeerError("bad_size", f"{len(data)} bytes are not a QUESTION_MSG")
    (key,) = U32.unpack_from(data, ADDRESS_BYTES)
    return QuestionMsg(parse_address(data[:ADDRESS_BYTES]), key)


def encode_accept_sender(message: AcceptSenderMsg) -> bytes:
    """Encode ACCEPT_SENDER_MSG: 12 bytes, 8 without the address."""
    fields = packed(ACCEPT_SENDER, message.accept_port, message.key, message.data_port)
    return encode_address(message.address) + fields


def parse_accept_sender(data: bytes, omit_address: bool = False) -> AcceptSenderMsg:
    """Parse ACCEPT_SENDER_MSG. PeerError `bad_size`, `zero_port` for a port that cannot be connected to."""
    address, fields = _split(data, ACCEPT_SENDER.size, omit_address)
    accept_port, key, data_port = ACCEPT_SENDER.unpack(fields)
    if not accept_port or not data_port:
        raise PeerError("zero_port", "ACCEPT_SENDER_MSG")
    return AcceptSenderMsg(address, accept_port, key, data_port)


def encode_accept_receiver(message: AcceptReceiverMsg) -> bytes:
    """Encode ACCEPT_RECEIVER_MSG: 11 bytes, 7 without the address."""
    fields = packed(ACCEPT_RECEIVER, message.endtransmission_port, message.id, message.msg_type)
    return encode_address(message.address) + fields


def parse_accept_receiver(data: bytes, omit_address: bool = False) -> AcceptReceiverMsg:
    """Parse ACCEPT_RECEIVER_MSG; port and id of an uncertain message are not checked (2.3).

    PeerError `bad_size`, `unknown_type`; for a certain message `zero_port`, `zero_id`.
    """
    address, fields = _split(data, ACCEPT_RECEIVER.size, omit_address)
    port, identifier, number = ACCEPT_RECEIVER.unpack(fields)
    quality = quality_of(number)
    if quality is Quality.HIGH_QUALITY and not (port and identifier):
        raise PeerError("zero_id" if port else "zero_port", "ACCEPT_RECEIVER_MSG")
    return AcceptReceiverMsg(address, port, identifier, quality)


def encode_data(message: DataMsg) -> bytes:
    """Encode DATA_MSG: 12 bytes and the data, 8 without the address. LocalError if `record` is not a record."""
    record = message.record
    if len(record) < U32.size or U32.unpack_from(record)[0] != len(record) - U32.size:
        raise LocalError("not a record: u32 message_size, data")
    return encode_address(message.address) + packed(U32, message.key) + record


def encode_record(data: bytes) -> bytes:
    """Encode data as in a DATA_MSG, and as the store keeps it: u32 message_size, data."""
    return packed(U32, len(data)) + data


def encode_end_transmission(message: EndTransmissionMsg) -> bytes:
    """Encode END_TRANSMISSION_MSG: 9 bytes, 5 without the address."""
    return encode_address(message.address) + packed(END_TRANSMISSION, message.id, message.result)


def parse_end_transmission(data: bytes, omit_address: bool = False) -> EndTransmissionMsg:
    """Parse END_TRANSMISSION_MSG. PeerError `bad_size`, `unknown_result`."""
    address, fields = _split(data, END_TRANSMISSION.size, omit_address)
    identifier, number = END_TRANSMISSION.unpack(fields)
    try:
        return EndTransmissionMsg(address, identifier, Result(number))
    except ValueError:
        raise PeerError("unknown_result", str(number)) from None


def quality_of(number: int) -> Quality:
    """Return the Quality of a msg_type. PeerError `unknown_type`."""
    try:
        return Quality(number)
    except ValueError:
        raise PeerError("unknown_type", str(number)) from None


def _split(data: bytes, size: int, omit_address: bool) -> tuple[str | None, bytes]:
    """Return the address and the fields behind it. PeerError `bad_size`."""
    start = 0 if omit_address else ADDRESS_BYTES
    if len(data) != start + size:
        raise PeerError("bad_size", f"{len(data)} bytes instead of {start + size}")
    return None if omit_address else parse_address(data[:start]), data[start:]
