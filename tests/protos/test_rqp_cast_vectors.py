"""Test the vectors, both directions: whole, by octets, split everywhere, each octet changed (rqp_cast.md 2)."""

import json
from pathlib import Path
from typing import Any

import pytest

from protos.rqp_cast import (
    AcceptReceiverMsg,
    AcceptSenderMsg,
    Damaged,
    DataMsg,
    EndTransmissionMsg,
    FileDamaged,
    GarbageMsg,
    GarbageReader,
    Quality,
    QuestionMsg,
    Reason,
    Result,
    TMsg,
    encode_garbage,
    encode_record,
    encode_t_msg,
    parse_accept_receiver,
    parse_accept_sender,
    parse_end_transmission,
    parse_question,
    parse_t_msg,
)
from protos.types import PeerError
from tests.protos.feeding import cut, one_by_one
from tests.protos.rqp_cast_samples import Travelling, encode, read, reader_for

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "rqp-cast.json").read_text())
LIMIT = 1 << 10  # of data, in bytes
STORED = ("T_MSG", "GARBAGE_MSG")
STREAMED = [each for each in VECTORS if each["fields"]["message"] not in (*STORED, "QUESTION_MSG")]

every_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
every_streamed = pytest.mark.parametrize("vector", STREAMED, ids=lambda vector: vector["name"])


def meant(fields: dict[str, Any]) -> Travelling | TMsg | GarbageMsg:
    """Return the message that a vector's fields give."""
    data = bytes.fromhex(fields.get("data", ""))
    address = fields.get("address")
    match fields["message"]:
        case "QUESTION_MSG":
            return QuestionMsg(fields["address"], fields["key"])
        case "ACCEPT_SENDER_MSG":
            return AcceptSenderMsg(address, fields["accept_port"], fields["key"], fields["data_port"])
        case "ACCEPT_RECEIVER_MSG":
            quality = Quality(fields["msg_type"])
            return AcceptReceiverMsg(address, fields["endtransmission_port"], fields["id"], quality)
        case "DATA_MSG":
            return DataMsg(address, fields["key"], encode_record(data))
        case "END_TRANSMISSION_MSG":
            return EndTransmissionMsg(address, fields["id"], Result(fields["result"]))
        case "T_MSG":
            return TMsg(Quality(fields["msg_type"]), fields["id"], fields["key"], data)
        case "GARBAGE_MSG":
            return GarbageMsg(data, Reason(fields["reason"]))
    raise AssertionError(fields)


def encoded(message: Travelling | TMsg | GarbageMsg) -> bytes:
    match message:
        case TMsg():
            return encode_t_msg(message)
        case GarbageMsg():
            return encode_garbage(message)
        case _:
            return encode(message)


def parsed(wire: bytes, like: Travelling | TMsg | GarbageMsg) -> Any:
    """Return `wire` as a message of that kind, or None if incomplete. Raises PeerError, FileDamaged."""
    omits = getattr(like, "address", "") is None
    match like:
        case QuestionMsg():
            return parse_question(wire)
        case AcceptSenderMsg():
            return parse_accept_sender(wire, omits)
        case AcceptReceiverMsg():
            return parse_accept_receiver(wire, omits)
        case EndTransmissionMsg():
            return parse_end_transmission(wire, omits)
        case DataMsg():
            return reader_for(like, LIMIT).receive(wire)
        case TMsg():
            return parse_t_msg(wire)
        case GarbageMsg():
            return next(GarbageReader(LIMIT).receive(wire), None)


@every_vector
def test_each_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    assert encoded(meant(vector["fields"])).hex() == vector["wire"]  # 2


@every_vector
def test_vector_is_decoded(vector: dict) -> None:
    message = meant(vector["fields"])
    assert parsed(bytes.fromhex(vector["wire"]), message) == message  # 2


@every_streamed
def test_the_cut_of_the_octets_does_not_matter(vector: dict) -> None:
    wire, message = bytes.fromhex(vector["wire"]), meant(vector["fields"])
    assert not isinstance(message, TMsg | GarbageMsg)
    for behind in (b"", b"?", b"??????"):  # 5.2: octets after the end are ignored and counted
        data = wire + behind
        for chunks in ([data], one_by_one(data), *(cut(data, [place]) for place in range(len(data) + 1))):
            reader = reader_for(message)
            assert read(reader, chunks) == [message], chunks
            assert reader.excess == len(behind), chunks


@every_vector
def test_with_any_octet_changed_it_is_refused_or_another_good_one(vector: dict) -> None:
    wire, message = bytes.fromhex(vector["wire"]), meant(vector["fields"])
    for place in range(len(wire)):
        for value in range(256):
            changed = wire[:place] + bytes([value]) + wire[place + 1 :]
            try:
                found = parsed(changed, message)
            except (PeerError, FileDamaged):
                assert changed != wire
                continue
            if isinstance(found, type(message)):
                assert changed.startswith(encoded(found))  # shorter only where message_size was changed
                assert len(encoded(found)) == len(changed) or isinstance(found, DataMsg | GarbageMsg)
            else:
                assert isinstance(found, Damaged | None)  # another key, too large, or incomplete
                assert changed != wire
