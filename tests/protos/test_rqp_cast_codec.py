"""Invalid and oversized messages, and the encoding of numbers and addresses (rqp_cast.md 1, 2)."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_cast import (
    FINDRECEIVER_PORT,
    MAX_U32,
    RECEIVER_PORTS,
    REQUEST_PORT,
    SENDER_PORTS,
    AcceptReceiverMsg,
    AcceptSenderMsg,
    DataMsg,
    EndTransmissionMsg,
    Quality,
    QuestionMsg,
    Reason,
    Result,
    Unanswered,
    agent_of,
    encode_data,
    encode_question,
    encode_record,
    fingerprint,
    identity,
    is_address,
    judge_question,
    parse_accept_receiver,
    parse_accept_sender,
    parse_end_transmission,
    parse_question,
)
from protos.types import LocalError, PeerError
from tests.protos.rqp_cast_samples import KEY, OTHER, SENDER, Travelling, encode


def reason_of(parse: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(PeerError) as caught:
        parse(*arguments)
    return caught.value.reason


# --- numbers (1, 2.1)


def test_numbers_are_those_of_the_document() -> None:
    assert (Quality.LOW_QUALITY, Quality.HIGH_QUALITY) == (0, 1)
    assert (Result.FAILURE, Result.SUCCESS) == (0, 1)
    assert (Reason.INJURED, Reason.PARTIALLY_RECEIVED, Reason.ZOMBIE) == (0, 1, 2)
    assert [reason.label for reason in Reason] == ["injured", "partially_received", "zombie"]


def test_ports_do_not_overlap() -> None:
    ports = [REQUEST_PORT, FINDRECEIVER_PORT, *RECEIVER_PORTS, *SENDER_PORTS]
    assert sorted(set(ports)) == ports
    assert (ports[2], ports[-1]) == (11320, 11383)


# --- refused input


@pytest.mark.parametrize("size", [0, 7, 9, 12])
def test_a_question_has_eight_octets(size: int) -> None:
    assert reason_of(parse_question, bytes(size)) == "bad_size"


@pytest.mark.parametrize(
    ("parse", "size"), [(parse_accept_sender, 12), (parse_accept_receiver, 11), (parse_end_transmission, 9)]
)
def test_a_message_has_its_size_with_and_without_the_address(parse: Callable[..., Any], size: int) -> None:
    good = bytes([1]) * size
    parse(good)
    parse(good[4:], True)
    for wrong, omits in (
        (size - 1, False),
        (size + 1, False),
        (size - 4, False),
        (size, True),
        (size - 5, True),
    ):
        assert reason_of(parse, bytes([1]) * wrong, omits) == "bad_size"


def test_port_zero_is_refused() -> None:
    for ports in ((0, 1), (1, 0), (0, 0)):
        wire = encode(AcceptSenderMsg(SENDER, ports[0], KEY, ports[1]))
        assert reason_of(parse_accept_sender, wire) == "zero_port"


def test_a_certain_message_needs_a_port_and_an_id() -> None:
    for port, identifier, reason in ((0, 99, "zero_port"), (1, 0, "zero_id")):
        certain = encode(AcceptReceiverMsg(SENDER, port, identifier, Quality.HIGH_QUALITY))
        assert reason_of(parse_accept_receiver, certain) == reason
        uncertain = AcceptReceiverMsg(SENDER, port, identifier, Quality.LOW_QUALITY)
        assert parse_accept_receiver(encode(uncertain)) == uncertain  # 2.3: not checked


@pytest.mark.parametrize("number", [2, 128, 255])
def test_other_types_and_results_are_unknown(number: int) -> None:
    approval = encode(AcceptReceiverMsg(SENDER, 1, 99, Quality.HIGH_QUALITY))
    assert reason_of(parse_accept_receiver, approval[:-1] + bytes([number])) == "unknown_type"
    end = encode(EndTransmissionMsg(SENDER, 99, Result.SUCCESS))
    assert reason_of(parse_end_transmission, end[:-1] + bytes([number])) == "unknown_result"


@pytest.mark.parametrize(
    "message",
    [
        QuestionMsg(SENDER, MAX_U32 + 1),
        QuestionMsg(SENDER, -1),
        QuestionMsg("10.0.0", 7),
        QuestionMsg("::1", 7),
        AcceptSenderMsg(SENDER, 65_536, 7, 1),
        EndTransmissionMsg(SENDER, -1, Result.SUCCESS),
        DataMsg(SENDER, 7, b"\0\0"),
        DataMsg(SENDER, 7, b"\0\0\0\2x"),
        DataMsg(SENDER, 7, b"\0\0\0\1xy"),
    ],
    ids=str,
)
def test_oversized_field_is_a_local_error(message: Travelling) -> None:
    with pytest.raises(LocalError):
        encode(message)


# --- addresses (2.2)


@given(st.lists(st.integers(0, 255).map(str), min_size=4, max_size=4).map(".".join))
def test_every_address_comes_back(address: str) -> None:
    assert is_address(address)
    assert parse_question(encode_question(QuestionMsg(address, KEY))).address == address


@pytest.mark.parametrize(
    "text",
    ["", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.-4", "1.2.3.4 ", "\u0661.2.3.4", "::1", "a"],
)
def test_other_texts_are_no_address(text: str) -> None:
    assert not is_address(text)


def test_a_question_must_name_where_it_comes_from() -> None:
    wire = encode_question(QuestionMsg(SENDER, KEY))
    assert judge_question(wire, SENDER, trust_address=False) == QuestionMsg(SENDER, KEY)
    assert reason_of(judge_question, wire, OTHER, False) == "foreign_address"
    assert judge_question(wire, OTHER, trust_address=True) == QuestionMsg(SENDER, KEY)
    assert reason_of(judge_question, wire[:-1], SENDER, True) == Unanswered.BAD_SIZE.value


def test_agent_is_the_connection_address_unless_the_field_is_trusted() -> None:
    assert agent_of(SENDER, OTHER, trust_address=False) == OTHER
    assert agent_of(SENDER, OTHER, trust_address=True) == SENDER
    assert agent_of(None, OTHER, trust_address=True) == OTHER


# --- equality of messages (2.3)


def test_an_id_is_remembered_with_its_agent() -> None:
    assert identity(SENDER, 99) == bytes([10, 0, 0, 1, 0, 0, 0, 99])
    assert len({identity(SENDER, 99), identity(OTHER, 99), identity(SENDER, 98)}) == 3


def test_content_is_key_size_and_data() -> None:
    assert fingerprint(7, b"hello") == hashlib.sha256(bytes.fromhex("0000000700000005") + b"hello").digest()
    different = {
        fingerprint(7, b"hello"),
        fingerprint(8, b"hello"),
        fingerprint(7, b"hallo"),
        fingerprint(7, b""),
    }
    assert len(different) == 4


def test_a_record_is_data_as_it_travels() -> None:
    assert encode_record(b"hello") == b"\0\0\0\5hello"
    assert DataMsg(None, KEY, encode_record(b"hello")).data == b"hello"
    assert encode_data(DataMsg(None, KEY, encode_record(b""))) == bytes.fromhex("0000000700000000")
