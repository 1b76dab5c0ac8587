"""The sending agent, branch by branch, with its times (rqp_cast.md 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protos.rqp_cast import (
    AcceptSenderMsg,
    Approve,
    Ask,
    CloseAll,
    Keep,
    Kept,
    MoveToEnd,
    Offer,
    Outgoing,
    PutBack,
    Quality,
    Refuse,
    Remove,
    SendData,
    Sender,
    SenderSettings,
    SenderState,
    Unheard,
    Why,
)
from protos.types import LocalError
from tests.protos.rqp_cast_samples import (
    BOUND,
    CERTAIN,
    FAILURE,
    ID,
    KEY,
    OFFER,
    OTHER,
    RECEIVER,
    REPEATED,
    SUCCESS,
    UNCERTAIN,
    approving,
    asking,
    broken_off,
    confirming,
    connecting,
    sending,
)

BOTH = pytest.mark.parametrize("message", [CERTAIN, UNCERTAIN], ids=["certain", "uncertain"])


def back(message: Outgoing, why: Why) -> MoveToEnd | PutBack:
    """Return the action for a message that counts as not answered."""
    return MoveToEnd(why, message.kept) if message.is_certain else PutBack(why)


# --- a message without faults (3, 4.1, 4.2)


def test_a_certain_message_is_removed_once_it_is_confirmed() -> None:
    sender = Sender(KEY, SenderSettings())
    assert (sender.state, sender.deadline()) == (SenderState.IDLE, None)
    assert sender.send(CERTAIN, 10.0) == [Ask(None)]
    assert (sender.state, sender.deadline()) == (SenderState.WAIT_FOR_RECEIVER, 12.0)
    assert sender.answered(OFFER, 10.5) == [Approve(OFFER, Quality.HIGH_QUALITY, ID)]
    assert (sender.state, sender.deadline()) == (SenderState.APPROVING, 25.5)
    kept = Kept(receiver=RECEIVER, first_whole_at=10.75)
    assert sender.approved(10.75) == [Keep(kept), SendData(OFFER)]  # stored before an octet leaves (4.2)
    assert sender.begun(11.0) == []
    assert sender.sent(11.5) == []
    assert (sender.state, sender.deadline()) == (SenderState.WAIT_FOR_CONFIRMATION, 25.5)
    assert sender.ended(SUCCESS, RECEIVER, 12.0) == [CloseAll(False), Remove(Why.CONFIRMED)]
    assert (sender.state, sender.deadline()) == (SenderState.IDLE, None)


def test_an_uncertain_message_is_done_once_it_is_sent() -> None:
    sender = connecting(UNCERTAIN)
    assert sender.begun(0.5) == []
    assert sender.sent(1.0) == [CloseAll(False), Remove(Why.SENT)]
    assert sender.send(CERTAIN, 1.0) == [Ask(None)]  # the next one at once


def test_uncertain_message_keeps_no_state() -> None:
    assert approving(UNCERTAIN).approved(0.0) == [SendData(OFFER)]


def test_a_bound_message_is_asked_for_at_its_receiver_and_kept_as_it_is() -> None:
    sender = Sender(KEY, SenderSettings())
    assert sender.send(REPEATED, 100.0) == [Ask(RECEIVER)]
    sender.answered(OFFER, 100.0)
    assert sender.approved(100.0) == [SendData(OFFER)]


# --- no answer (4.1)


@BOTH
def test_without_an_answer_it_goes_back_after_t_wait1(message: Outgoing) -> None:
    sender = asking(message)
    assert sender.on_time(1.9) == []
    assert sender.on_time(2.0) == [CloseAll(True), back(message, Why.NO_ANSWER)]
    assert sender.state is SenderState.IDLE


@BOTH
def test_the_answer_that_comes_too_late_is_none(message: Outgoing) -> None:
    sender = asking(message)
    gone = [CloseAll(True), back(message, Why.NO_ANSWER)]
    assert sender.answered(OFFER, 2.0) == [*gone, Refuse(Unheard.NOT_ASKED)]
    assert asking(message).answered(OFFER, 1.9) == [Approve(OFFER, message.quality, message.id)]


@BOTH
def test_a_failure_before_the_first_octet_counts_as_no_answer(message: Outgoing) -> None:
    for sender in (approving(message), connecting(message)):
        assert sender.failed(1.0) == [CloseAll(False), back(message, Why.NOT_BEGUN)]


@BOTH
def test_time_over_before_the_first_octet_counts_as_no_answer(message: Outgoing) -> None:
    for sender in (approving(message), connecting(message)):
        assert sender.on_time(14.9) == []
        assert sender.on_time(15.0) == [CloseAll(True), back(message, Why.NOT_BEGUN)]


def test_failure_after_the_first_octet_fixes_no_receiver() -> None:
    for message, kept in ((CERTAIN, Kept()), (REPEATED, BOUND)):
        sender = sending(message)
        assert sender.failed(1.0) == []
        assert (sender.state, sender.deadline()) == (SenderState.BROKEN_OFF, 3.0)
        assert sender.on_time(3.0) == [CloseAll(False), MoveToEnd(Why.CUT_SHORT, kept)]


def test_failure_at_the_end_of_t_wait4_fixes_no_receiver() -> None:
    sender = sending(CERTAIN)
    assert sender.failed(14.0) == []
    assert sender.on_time(15.0) == [CloseAll(False), MoveToEnd(Why.CUT_SHORT, Kept())]


def test_timeout_after_the_first_octet_fixes_the_receiver() -> None:
    assert sending(CERTAIN).on_time(14.9) == []
    assert sending(CERTAIN).on_time(15.0) == [CloseAll(True), MoveToEnd(Why.CUT_SHORT, BOUND)]


def test_an_uncertain_message_has_left_with_its_first_octet() -> None:
    assert sending(UNCERTAIN).failed(1.0) == [CloseAll(False), Remove(Why.CUT_SHORT)]
    assert sending(UNCERTAIN).on_time(15.0) == [CloseAll(True), Remove(Why.CUT_SHORT)]


@BOTH
def test_after_an_attempt_in_vain_the_key_rests_until_t_wait1_from_its_question(message: Outgoing) -> None:
    for sender in (approving(message), connecting(message), sending(UNCERTAIN)):
        sender.failed(0.5)
        assert (sender.state, sender.deadline()) == (SenderState.PAUSING, 2.0)
        with pytest.raises(LocalError):
            sender.send(message, 1.9)
        assert sender.on_time(1.9) == []
        assert sender.state is SenderState.PAUSING
        assert sender.on_time(2.0) == []
        assert (sender.state, sender.deadline()) == (SenderState.IDLE, None)


def test_elapsed_pause_ends_without_a_timer_event() -> None:
    sender = approving()
    sender.failed(0.5)
    assert sender.send(CERTAIN, 2.0) == [Ask(None)]


# --- which input counts (1.1, 3.3, 4.2)


def test_only_the_first_answer_is_taken() -> None:
    second = replace(OFFER, agent=OTHER, source=OTHER)
    for sender in (approving(), connecting(), sending(), confirming()):
        state = sender.state
        assert sender.answered(second, 1.0) == [Refuse(Unheard.NOT_ASKED)]
        assert (sender.state, sender.deadline()) == (state, 15.0)


def test_answers_for_other_keys_or_at_other_times_are_not() -> None:
    sender = asking()
    assert sender.answered(replace(OFFER, key=KEY + 1), 1.0) == [Refuse(Unheard.NOT_ASKED)]
    assert sender.state is SenderState.WAIT_FOR_RECEIVER
    assert Sender(KEY, SenderSettings()).answered(OFFER, 0.0) == [Refuse(Unheard.NOT_ASKED)]


def test_after_a_whole_send_only_the_same_receiver_may_have_it() -> None:
    sender = asking(REPEATED)
    other = replace(OFFER, agent=OTHER, source=OTHER)
    assert sender.answered(other, 0.5) == [Refuse(Unheard.OTHER_RECEIVER)]
    assert (sender.state, sender.deadline()) == (SenderState.WAIT_FOR_RECEIVER, 2.0)
    assert sender.answered(OFFER, 1.0) == [Approve(OFFER, Quality.HIGH_QUALITY, ID)]


def test_a_trusted_receiver_is_the_same_at_another_address() -> None:
    message = AcceptSenderMsg(RECEIVER, 11322, KEY, 11323)
    assert Offer.of(message, OTHER, trust_address=False).agent == OTHER
    offer = Offer.of(message, OTHER, trust_address=True)
    assert offer == Offer(RECEIVER, OTHER, KEY, 11322, 11323)
    sender = asking(REPEATED)
    assert sender.answered(offer, 1.0) == [Approve(offer, Quality.HIGH_QUALITY, ID)]
    for step in (sender.approved, sender.begun, sender.sent):
        step(1.0)
    assert sender.ended(SUCCESS, RECEIVER, 2.0) == [Refuse(Unheard.FOREIGN_SOURCE)]  # not where the data went
    assert sender.ended(SUCCESS, OTHER, 2.0)[1:] == [Remove(Why.CONFIRMED)]


def test_a_confirmation_of_another_message_changes_nothing() -> None:
    sender = confirming()
    assert sender.ended(replace(SUCCESS, id=ID + 1), RECEIVER, 14.0) == [Refuse(Unheard.OTHER_ID)]
    assert (sender.state, sender.deadline()) == (SenderState.WAIT_FOR_CONFIRMATION, 15.0)
    assert sender.ended(SUCCESS, OTHER, 14.0) == [Refuse(Unheard.FOREIGN_SOURCE)]
    assert sender.ended(SUCCESS, RECEIVER, 14.9) == [CloseAll(False), Remove(Why.CONFIRMED)]


def test_a_confirmation_out_of_turn_does_not_hide_that_the_time_is_up() -> None:
    gone = [CloseAll(True), MoveToEnd(Why.NO_ANSWER, Kept())]
    assert asking().ended(SUCCESS, RECEIVER, 2.0) == [*gone, Refuse(Unheard.NOT_AWAITED)]


def test_a_confirmation_is_not_awaited_before_the_first_octet_nor_after_the_end() -> None:
    for sender in (Sender(KEY, SenderSettings()), asking(), approving(), connecting(), sending(UNCERTAIN)):
        state = sender.state
        assert sender.ended(SUCCESS, RECEIVER, 1.0) == [Refuse(Unheard.NOT_AWAITED)]
        assert sender.state is state


# --- late, repeated and unordered reports


@BOTH
def test_reports_about_a_finished_attempt_are_ignored(message: Outgoing) -> None:
    sender = connecting(message)
    sender.failed(0.5)
    for _ in range(2):
        for step in (sender.approved, sender.begun, sender.sent, sender.failed):
            assert step(1.0) == []
        assert (sender.state, sender.deadline()) == (SenderState.PAUSING, 2.0)


@BOTH
def test_late_report_of_a_step_ends_the_attempt(message: Outgoing) -> None:
    gone = [CloseAll(True), back(message, Why.NOT_BEGUN)]
    assert approving(message).approved(15.0) == gone
    assert connecting(message).begun(15.0) == gone
    assert approving(message).failed(15.0) == gone
    assert asking(message).failed(2.0) == [CloseAll(True), back(message, Why.NO_ANSWER)]


def test_steps_out_of_order_are_local_errors() -> None:
    wrong = [
        (asking(), ("approved", "begun", "sent", "failed")),
        (approving(), ("begun", "sent")),
        (connecting(), ("approved", "sent")),
        (sending(), ("approved", "begun")),
        (confirming(), ("approved", "begun", "sent", "failed")),
        (broken_off(), ("approved", "begun", "sent", "failed")),
    ]
    for sender, steps in wrong:
        state = sender.state
        for step in steps:
            with pytest.raises(LocalError):
                getattr(sender, step)(0.0)
            assert sender.state is state


def test_one_message_at_a_time_and_none_before_its_time() -> None:
    for sender in (asking(), approving(), connecting(), sending(), confirming(), broken_off()):
        with pytest.raises(LocalError):
            sender.send(CERTAIN, 100.0)
        assert sender.on_time(100.0) != []  # nothing of the first was lost
    early = replace(CERTAIN, kept=Kept(failures=1, not_before=5.0))
    sender = Sender(KEY, SenderSettings())
    with pytest.raises(LocalError, match="before its time"):
        sender.send(early, 4.9)
    assert sender.send(early, 5.0) == [Ask(None)]


def test_a_second_answer_is_not_awaited() -> None:
    for first, second in ((SUCCESS, FAILURE), (FAILURE, SUCCESS)):
        sender = confirming()
        assert len(sender.ended(first, RECEIVER, 1.0)) == 2
        assert sender.ended(second, RECEIVER, 1.0) == [Refuse(Unheard.NOT_AWAITED)]
