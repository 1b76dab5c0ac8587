"""Outcomes of a certain message that was sent, with its times (rqp_cast.md 4.2)."""

from __future__ import annotations

from dataclasses import replace

from protos.rqp_cast import (
    Ask,
    Bury,
    CloseAll,
    Hold,
    Kept,
    MoveToEnd,
    Outgoing,
    Quality,
    Refuse,
    Remove,
    Sender,
    SenderSettings,
    SenderState,
    Unheard,
    Why,
)
from tests.protos.rqp_cast_samples import (
    BOUND,
    CERTAIN,
    FAILURE,
    ID,
    KEY,
    OFFER,
    RECEIVER,
    REPEATED,
    SUCCESS,
    asking,
    broken_off,
    confirming,
    sending,
)

DAY_S, HOUR_S = 24 * 3600.0, 3600.0


def test_t_wait4_is_counted_from_the_listening() -> None:
    sender = asking()
    sender.answered(OFFER, 1.0)
    sender.approved(3.0)
    sender.begun(5.0)
    sender.sent(9.0)
    kept = Kept(receiver=RECEIVER, first_whole_at=3.0)  # when it was stored: no later than its last octet
    assert sender.on_time(15.9) == []
    assert sender.on_time(16.0) == [CloseAll(True), MoveToEnd(Why.NOT_CONFIRMED, kept)]
    assert sender.ended(SUCCESS, RECEIVER, 16.0) == [Refuse(Unheard.NOT_AWAITED)]


def test_a_confirmation_that_waited_unread_counts_until_it_was_given_up() -> None:
    for make in (sending, confirming):
        assert make().ended(SUCCESS, RECEIVER, 99.0) == [CloseAll(False), Remove(Why.CONFIRMED)]
        sender = make()
        sender.on_time(99.0)
        assert sender.ended(SUCCESS, RECEIVER, 99.0) == [Refuse(Unheard.NOT_AWAITED)]


def test_unconfirmed_message_counts_no_failure_and_is_retried_at_once() -> None:
    sender = confirming(replace(REPEATED, kept=replace(BOUND, failures=19)))
    assert sender.on_time(15.0)[1] == MoveToEnd(Why.NOT_CONFIRMED, replace(BOUND, failures=19))
    assert sender.state is SenderState.IDLE


def test_late_report_of_a_whole_send_counts() -> None:
    assert sending().sent(15.5) == [CloseAll(True), MoveToEnd(Why.NOT_CONFIRMED, BOUND)]


def test_failures_are_spaced_one_second_doubling_to_sixty() -> None:
    message, pauses = CERTAIN, []
    for failures in range(1, 20):
        move = confirming(message).ended(FAILURE, RECEIVER, 10.0)[1]
        assert isinstance(move, MoveToEnd)
        assert (move.why, move.kept.failures, move.kept.receiver) == (Why.FAILURE, failures, RECEIVER)
        assert move.kept.not_before is not None
        pauses.append(move.kept.not_before - 10.0)
        message = replace(CERTAIN, kept=replace(move.kept, not_before=0.0))
    assert pauses == [1, 2, 4, 8, 16, 32] + [60] * 13


def test_the_twentieth_failure_buries_it_as_unconfirmed() -> None:
    kept = replace(BOUND, failures=18)
    assert isinstance(confirming(replace(CERTAIN, kept=kept)).ended(FAILURE, RECEIVER, 1.0)[1], MoveToEnd)
    kept = replace(BOUND, failures=19)
    end = confirming(replace(CERTAIN, kept=kept)).ended(FAILURE, RECEIVER, 1.0)
    assert end == [CloseAll(False), Bury(Why.UNCONFIRMED, replace(kept, failures=20))]


def test_a_thousand_attempts_are_not_too_many_to_count() -> None:
    settings = SenderSettings(max_attempts=1 << 20)
    kept = replace(BOUND, failures=100_000)
    move = confirming(replace(CERTAIN, kept=kept), settings).ended(FAILURE, RECEIVER, 1.0)[1]
    assert isinstance(move, MoveToEnd)
    assert move.kept.not_before == 61.0


def test_failure_pauses_the_key_but_not_other_messages() -> None:
    sender = confirming()
    sender.ended(FAILURE, RECEIVER, 0.5)
    assert (sender.state, sender.deadline()) == (SenderState.PAUSING, 2.0)
    assert sender.send(Outgoing(Quality.HIGH_QUALITY, ID + 1), 2.0) == [Ask(None)]


def test_failure_before_the_last_octet_counts_and_fixes_no_receiver() -> None:
    move = sending().ended(FAILURE, RECEIVER, 1.0)[1]
    assert move == MoveToEnd(Why.FAILURE, Kept(failures=1, not_before=2.0))
    kept = replace(BOUND, failures=19)
    assert isinstance(sending(replace(CERTAIN, kept=kept)).ended(FAILURE, RECEIVER, 1.0)[1], Bury)


def test_failure_after_a_broken_connection_counts() -> None:
    """Check that FAILURE after a broken connection counts, as before the break, and fixes no receiver.

    R closed the connection since it refuses the message.
    """
    sender = sending()
    sender.failed(1.0)
    assert sender.ended(replace(FAILURE, id=ID + 1), RECEIVER, 1.5) == [Refuse(Unheard.OTHER_ID)]
    assert sender.ended(FAILURE, RECEIVER, 2.0)[1] == MoveToEnd(Why.FAILURE, Kept(failures=1, not_before=3.0))
    assert broken_off().ended(SUCCESS, RECEIVER, 1.0) == [CloseAll(False), Remove(Why.CONFIRMED)]


def test_early_success_counts() -> None:
    sender = sending()
    assert sender.ended(SUCCESS, RECEIVER, 1.0) == [CloseAll(False), Remove(Why.CONFIRMED)]
    assert sender.sent(1.0) == []  # of an attempt that has ended


def test_a_message_too_old_is_held() -> None:
    sender = Sender(KEY, SenderSettings())
    assert sender.send(REPEATED, DAY_S - HOUR_S) == [Hold(BOUND)]
    assert (sender.state, sender.deadline()) == (SenderState.IDLE, None)
    assert sender.send(REPEATED, DAY_S - HOUR_S - 0.5) == [Ask(RECEIVER)]


def test_a_message_never_sent_whole_is_never_too_old() -> None:
    kept = Kept(failures=3)
    sender = Sender(KEY, SenderSettings())
    assert sender.send(replace(CERTAIN, kept=kept), 1e9) == [Ask(None)]
