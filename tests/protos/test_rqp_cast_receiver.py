"""A receiving agent's session, branch by branch, with its times (rqp_cast.md 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protos.rqp_cast import (
    AcceptReceiverMsg,
    BuryReceived,
    Confirm,
    DataMsg,
    Free,
    Insert,
    Insertion,
    ReceiverSession,
    ReceiverSettings,
    ReceiverState,
    Result,
    encode_data,
    encode_record,
)
from protos.types import LocalError
from tests.protos.feeding import one_by_one
from tests.protos.rqp_cast_samples import (
    HIGH,
    ID,
    KEY,
    LOW,
    OTHER,
    SENDER,
    chosen,
    data_msg,
    inserting,
    offered,
)

BOTH = pytest.mark.parametrize("approval", [HIGH, LOW], ids=["certain", "uncertain"])
YES = Confirm(11352, ID, Result.SUCCESS)
NO = Confirm(11352, ID, Result.FAILURE)
FREE, FREE_RESTING = Free(ports_rest=False), Free(ports_rest=True)


def no(approval: AcceptReceiverMsg) -> list[Confirm]:
    """Return FAILURE, or nothing if there is no confirmation (5.6)."""
    return [NO] if approval is HIGH else []


# --- without faults (5.1, 5.5, 5.6)


def test_a_certain_message_is_inserted_and_confirmed() -> None:
    session = ReceiverSession(KEY, SENDER, ReceiverSettings(), 10.0)
    assert (session.state, session.deadline()) == (ReceiverState.WAIT_FOR_APPROVAL, 15.0)
    assert session.approved(HIGH, 12.0) == []
    assert (session.state, session.deadline()) == (ReceiverState.WAIT_FOR_MESSAGE, 22.0)
    assert session.receive(data_msg(), 13.0) == [Insert(encode_record(b"hello"), ID, SENDER)]
    assert (session.state, session.deadline()) == (ReceiverState.INSERTING, None)
    assert session.inserted(Insertion.STORED) == [FREE, YES]  # free before the sender can ask again (3.5)
    assert (session.state, session.deadline()) == (ReceiverState.END, None)


def test_an_uncertain_message_is_inserted_without_an_id_and_never_confirmed() -> None:
    session = chosen(replace(LOW, id=5, endtransmission_port=6))  # 2.3: not checked
    assert session.receive(data_msg(), 1.0) == [Insert(encode_record(b"hello"), 0, SENDER)]
    assert session.inserted(Insertion.STORED) == [FREE]


def test_a_message_may_come_in_pieces() -> None:
    session = chosen()
    *pieces, last = one_by_one(data_msg())
    for piece in pieces:
        assert session.receive(piece, 9.0) == []
    assert session.buffered == 16
    assert session.receive(last, 9.9) == [Insert(encode_record(b"hello"), ID, SENDER)]
    assert session.buffered == 0


def test_octets_after_the_end_are_counted() -> None:
    session = chosen()
    assert len(session.receive(data_msg() + b"??", 1.0)) == 1
    assert session.receive(b"???", 1.0) == []
    session.inserted(Insertion.STORED)
    assert session.receive(b"?", 2.0) == []
    assert session.excess == 6


def test_id_belongs_to_the_connection_address_unless_the_field_is_trusted() -> None:
    foreign = replace(HIGH, address=OTHER)
    for approval, trusts, agent in (
        (foreign, False, SENDER),
        (foreign, True, OTHER),
        (replace(HIGH, address=None), True, SENDER),
    ):
        session = chosen(approval, ReceiverSettings(trust_address=trusts))
        assert session.receive(data_msg(), 1.0) == [Insert(encode_record(b"hello"), ID, agent)]


def test_a_peer_that_leaves_out_addresses_is_understood() -> None:
    session = chosen(HIGH, ReceiverSettings(omit_address=True))
    wire = encode_data(DataMsg(None, KEY, encode_record(b"hello")))
    assert session.receive(wire, 1.0) == [Insert(encode_record(b"hello"), ID, SENDER)]


# --- nothing arrives (5.1)


def test_without_an_approval_it_ends_after_t_wait2() -> None:
    session = offered()
    assert session.on_time(4.9) == []
    assert session.on_time(5.0) == [FREE_RESTING]
    assert session.state is ReceiverState.END


def test_the_approval_that_comes_too_late_is_none() -> None:
    session = offered()
    assert session.approved(HIGH, 5.0) == [FREE_RESTING]
    assert session.approved(HIGH, 5.0) == []
    assert chosen().state is ReceiverState.WAIT_FOR_MESSAGE


@BOTH
def test_without_a_message_it_ends_t_wait3_after_the_approval(approval: AcceptReceiverMsg) -> None:
    session = offered()
    session.approved(approval, 4.5)
    assert session.on_time(14.0) == []
    assert session.on_time(14.5) == [FREE_RESTING]  # [D]: nothing received, nothing answered
    assert session.receive(data_msg(), 15.0) == []
    assert session.state is ReceiverState.END


@BOTH
def test_a_connection_lost_before_the_first_octet_ends_it(approval: AcceptReceiverMsg) -> None:
    for session in (offered(), chosen(approval)):
        assert session.lost(1.0) == [FREE]
        assert session.state is ReceiverState.END
        assert session.lost(1.0) == []


# --- damaged (5.2)


@BOTH
def test_truncated_message_is_buried_with_the_received_part(approval: AcceptReceiverMsg) -> None:
    for size, found in ((1, b""), (11, b""), (12, b""), (16, b"hell")):
        session = chosen(approval)
        assert session.receive(data_msg()[:size], 1.0) == []
        buried = BuryReceived("partially_received", found, "truncated")
        assert session.lost(2.0) == [buried, FREE, *no(approval)]


@BOTH
def test_time_over_in_the_middle_is_the_same_and_the_ports_rest(approval: AcceptReceiverMsg) -> None:
    buried = BuryReceived("partially_received", b"hell", "timed_out")
    for step in ("on_time", "receive", "lost"):
        session = chosen(approval)
        session.receive(data_msg()[:16], 9.9)
        arguments = (b"o", 10.0) if step == "receive" else (10.0,)
        assert getattr(session, step)(*arguments) == [buried, FREE_RESTING, *no(approval)]


@BOTH
def test_another_key_is_injured(approval: AcceptReceiverMsg) -> None:
    session = chosen(approval)
    buried = BuryReceived("injured", b"hello", "other_key")
    assert session.receive(data_msg(key=KEY + 1), 1.0) == [buried, FREE, *no(approval)]
    assert session.state is ReceiverState.END


@BOTH
def test_too_large_is_injured_before_its_body(approval: AcceptReceiverMsg) -> None:
    session = chosen(approval, ReceiverSettings(max_message_bytes=4))
    buried = BuryReceived("injured", b"", "message_too_large")
    assert session.receive(data_msg()[:12], 1.0) == [buried, FREE, *no(approval)]
    fitting = chosen(approval, ReceiverSettings(max_message_bytes=5))
    assert len(fitting.receive(data_msg(), 1.0)) == 1


# --- answers of the store (5.3 to 5.6)


@pytest.mark.parametrize(
    ("outcome", "certain", "uncertain"),
    [
        (Insertion.STORED, [FREE, YES], [FREE]),
        (Insertion.DUPLICATE, [FREE, NO], [FREE]),
        (Insertion.CLASH, [FREE, NO], [FREE]),
        (
            Insertion.GONE,
            [BuryReceived("zombie", b"hello", "gone"), FREE, NO],
            [BuryReceived("zombie", b"hello", "gone"), FREE],
        ),
        (Insertion.FULL, [FREE, NO], [BuryReceived("rejected_full", b"hello", "full"), FREE]),
        (Insertion.REFUSED, [FREE, NO], [BuryReceived("refused", b"hello", "refused"), FREE]),
        (Insertion.UNKNOWN, [FREE], [FREE]),
    ],
    ids=lambda value: value.value if isinstance(value, Insertion) else "",
)
def test_each_outcome(outcome: Insertion, certain: list, uncertain: list) -> None:
    assert inserting(HIGH).inserted(outcome) == certain
    assert inserting(LOW).inserted(outcome) == uncertain


def test_duplicate_may_be_confirmed_as_success() -> None:
    settings = ReceiverSettings(duplicate_result=Result.SUCCESS)
    assert inserting(HIGH, settings).inserted(Insertion.DUPLICATE) == [FREE, YES]
    assert inserting(HIGH, settings).inserted(Insertion.CLASH) == [FREE, NO]  # same content only (5.4)


def test_while_the_store_is_asked_time_and_connections_do_not_matter() -> None:
    session = inserting()
    assert session.on_time(1e9) == []
    assert session.lost(1e9) == []
    assert session.inserted(Insertion.STORED) == [FREE, YES]


# --- out of order


def test_steps_out_of_order_are_local_errors() -> None:
    with pytest.raises(LocalError):
        offered().receive(data_msg(), 0.0)
    for session in (chosen(), inserting()):
        with pytest.raises(LocalError):
            session.approved(HIGH, 0.0)
    for session in (offered(), chosen()):
        with pytest.raises(LocalError):
            session.inserted(Insertion.STORED)
    session = inserting()
    session.inserted(Insertion.STORED)
    with pytest.raises(LocalError):
        session.inserted(Insertion.STORED)


def test_after_its_end_nothing_changes() -> None:
    session = offered()
    session.on_time(5.0)
    assert session.receive(data_msg(), 6.0) == []
    assert session.approved(HIGH, 6.0) == []
    assert session.lost(6.0) == []
    assert (session.on_time(1e9), session.deadline()) == ([], None)
