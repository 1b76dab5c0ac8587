"""The sending MCA, row by row of its table (rqp_mca.md 3), with a simulated clock."""

import pytest

from protos.rqp_mca import (
    AskAvailability,
    Close,
    DataConfirm,
    Failure,
    MessageType,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    SenderSettings,
    State,
    ToDeadLetters,
)
from tests.protos.rqp_mca_senders import (
    AVAILABLE,
    CONFIRM,
    RELIABLE,
    UNRELIABLE,
    YOURS,
    asking,
    idle,
    requesting,
    sending,
    settled,
    stopped,
)

each_kind = pytest.mark.parametrize("kind", MessageType)


def test_the_times_are_those_of_the_spec() -> None:
    settings = SenderSettings()
    assert (settings.availability_timeout_s, settings.request_timeout_s) == (2.0, 2.0)  # 3.2
    assert settings.data_timeout_s == 10.0  # 3.2
    assert (settings.first_pause_s, settings.max_pause_s) == (1.0, 60.0)  # 3.1


# --- SENDER_IDLE


def test_idle_with_nothing_to_send_waits_for_nothing() -> None:
    sender = idle("a", "b")
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)
    assert sender.on_time(1e9) == []


def test_a_reliable_message_goes_to_the_known_receiver_and_is_awaited() -> None:
    sender = settled("a", "b")
    assert sender.put(RELIABLE, 1, 50.0) == [SendData("a", 0, 1)]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.AWAITING_MESSAGE, 60.0, 1)


def test_an_unreliable_message_goes_to_the_known_receiver_and_is_removed() -> None:
    sender = settled("a", "b")
    assert sender.put(UNRELIABLE, 1, 50.0) == [SendData("a", 0, 1), Remove(1)]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)


@each_kind
def test_without_a_known_receiver_all_are_asked(kind: MessageType) -> None:
    sender = idle("a", "b", "c")
    assert sender.put(kind, 1, 50.0) == [AskAvailability("a"), AskAvailability("b"), AskAvailability("c")]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 52.0)
    assert sender.put(kind, 1, 51.0) == []  # the question was sent already


# --- SENDER_AWAITING_QUEUE_REQUEST


def test_available_receiver_is_a_candidate() -> None:
    sender = asking("a", "b", "c")
    assert sender.received("c", AVAILABLE, 0.5) == []
    assert sender.received("a", AVAILABLE, 1.0) == []
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 2.0)
    assert sender.on_time(1.9) == []
    # in the order in which they answered; later answers do not count
    assert sender.on_time(2.0) == [Close("b"), RequestQueue("c")]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE, 4.0)


def test_once_all_have_answered_there_is_nothing_to_wait_for() -> None:
    # 3.5
    sender = asking("a", "b")
    assert sender.received("b", AVAILABLE, 0.5) == []
    assert sender.received("a", AVAILABLE, 0.6) == [RequestQueue("b")]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE, 2.6)


def test_once_all_have_answered_or_gone_there_is_nothing_to_wait_for() -> None:
    sender = asking("a", "b", "c")
    assert sender.lost("c", 0.5) == []
    assert sender.received("b", AVAILABLE, 0.6) == []
    assert sender.lost("a", 0.7) == [RequestQueue("b")]


def test_while_all_are_asked_a_lost_connection_only_drops_that_peer() -> None:
    # 3.3: the timer runs on, even if no peer is left
    sender = asking("a", "b")
    assert sender.lost("a", 0.5) == []
    assert sender.lost("b", 0.6) == []
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 2.0)
    assert sender.on_time(2.0) == [ReportFailure(Failure.NO_RECEIVER, 3.0, 0)]


def test_a_candidate_that_is_lost_is_none() -> None:
    sender = asking("a", "b", "c")
    sender.received("a", AVAILABLE, 0.5)
    sender.received("b", AVAILABLE, 0.5)
    assert sender.lost("a", 0.6) == []
    assert sender.on_time(2.0) == [Close("c"), RequestQueue("b")]


def test_time_out_without_candidates_stops_for_a_reliable_message() -> None:
    sender = asking("a", "b")
    assert sender.on_time(2.0) == [Close("a"), Close("b"), ReportFailure(Failure.NO_RECEIVER, 3.0, 0)]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.STOPPED, 3.0, 1)
    assert sender.failures == 1


def test_time_out_without_candidates_buries_an_unreliable_message() -> None:
    sender = asking("a", kind=UNRELIABLE)
    assert sender.on_time(2.0) == [Close("a"), ToDeadLetters(Failure.NO_RECEIVER)]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)


def test_each_unreliable_message_has_a_question_of_its_own() -> None:
    sender = asking("a", kind=UNRELIABLE, count=2)
    assert sender.on_time(2.0) == [Close("a"), ToDeadLetters(Failure.NO_RECEIVER), AskAvailability("a")]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.AWAITING_QUEUE_REQUEST, 4.0, 1)


def test_timeout_applies_without_any_peer() -> None:
    sender = idle()
    assert sender.put(UNRELIABLE, 1, 0.0) == []
    assert sender.deadline() == 2.0
    assert sender.on_time(2.0) == [ToDeadLetters(Failure.NO_RECEIVER)]


# --- SENDER_AWAITING_QUEUE


def test_a_reservation_sends_the_reliable_message() -> None:
    sender = requesting("a", "b", "c")
    assert sender.received("a", YOURS, 1.5) == [Close("b"), Close("c"), SendData("a", 0, 1)]
    assert (sender.state, sender.deadline()) == (State.AWAITING_MESSAGE, 11.5)
    assert sender.receiver == "a"


def test_a_reservation_makes_the_receiver_known_to_unreliable_messages() -> None:
    sender = requesting("a", "b", kind=UNRELIABLE, count=3)
    sent = [Close("b"), SendData("a", 0, 3), Remove(3)]
    assert sender.received("a", YOURS, 1.5) == sent
    assert (sender.state, sender.deadline(), sender.receiver) == (State.IDLE, None, "a")


def test_time_out_drops_the_candidate_and_asks_the_next() -> None:
    sender = requesting("a", "b", "c")
    assert sender.on_time(1.9) == []
    assert sender.on_time(2.0) == [Close("a"), RequestQueue("b")]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE, 4.0)
    assert sender.on_time(4.0) == [Close("b"), RequestQueue("c")]
    assert sender.received("c", YOURS, 5.0) == [SendData("c", 0, 1)]


def test_a_lost_connection_counts_as_the_time_out_of_its_request() -> None:
    sender = requesting("a", "b", "c")
    assert sender.lost("b", 0.5) == []  # no answer was awaited on that one
    assert sender.deadline() == 2.0
    assert sender.lost("a", 1.0) == [RequestQueue("c")]
    assert sender.deadline() == 3.0


def test_candidates_used_up_stop_a_reliable_message() -> None:
    sender = requesting("a", "b")
    sender.on_time(2.0)
    assert sender.on_time(4.0) == [Close("b"), ReportFailure(Failure.NOT_RESERVED, 5.0, 0)]
    assert (sender.state, sender.waiting) == (State.STOPPED, 1)


def test_candidates_used_up_bury_an_unreliable_message() -> None:
    sender = requesting("a", kind=UNRELIABLE)
    assert sender.lost("a", 0.5) == [ToDeadLetters(Failure.NOT_RESERVED)]
    assert (sender.state, sender.waiting) == (State.IDLE, 0)


# --- SENDER_AWAITING_MESSAGE


def test_a_confirm_removes_the_message() -> None:
    sender = sending("a")
    assert sender.received("a", CONFIRM, 9.0) == [Remove(1)]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)
    assert sender.receiver == "a"


def test_a_confirm_sends_the_next_message_to_the_same_receiver() -> None:
    sender = sending("a", count=2)
    assert sender.received("a", CONFIRM, 9.0) == [Remove(1), SendData("a", 0, 1)]
    assert sender.deadline() == 19.0


def test_time_out_forgets_the_receiver_and_asks_all() -> None:
    sender = sending("a", "b")
    assert sender.on_time(9.9) == []
    assert sender.on_time(10.0) == [
        Close("a"),
        ReportFailure(Failure.DATA_TIMEOUT, 10.0, 1),
        AskAvailability("a"),
        AskAvailability("b"),
    ]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 12.0)
    assert (sender.receiver, sender.unconfirmed, sender.waiting) == (None, 0, 1)


def test_a_lost_connection_counts_as_the_time_out_of_the_confirm() -> None:
    sender = sending("a")
    assert sender.lost("a", 3.0) == [
        ReportFailure(Failure.CONNECTION_LOST, 3.0, 1),
        AskAvailability("a"),
    ]


def test_a_refusal_right_after_a_failure_makes_a_pause() -> None:
    # 3.1: a receiver that reserves a queue and refuses every message must not be asked forever
    sender = sending("a")
    sender.lost("a", 0.0)
    sender.received("a", AVAILABLE, 0.0)
    sender.received("a", YOURS, 0.0)
    assert sender.lost("a", 0.0) == [ReportFailure(Failure.CONNECTION_LOST, 1.0, 1)]
    assert (sender.state, sender.deadline(), sender.failures) == (State.STOPPED, 1.0, 2)


# --- stopped (3.1)


def test_when_the_pause_is_over_all_are_asked_again() -> None:
    sender = stopped("a", "b")
    assert sender.on_time(2.9) == []
    assert sender.on_time(3.0) == [AskAvailability("a"), AskAvailability("b")]
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 5.0)


def test_pauses_double_up_to_a_minute_and_the_message_stays_first() -> None:
    sender, now, pauses = asking("a"), 0.0, []
    for _ in range(9):
        now += 2.0
        *_, report = sender.on_time(now)
        assert isinstance(report, ReportFailure)
        pauses.append(report.retry_at - now)
        now = report.retry_at
        assert sender.on_time(now) == [AskAvailability("a")]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert (sender.waiting, sender.failures) == (1, 9)


def test_a_message_that_gets_through_ends_the_row_of_failures() -> None:
    sender = stopped("a")
    sender.on_time(3.0)
    sender.received("a", AVAILABLE, 3.0)
    sender.received("a", YOURS, 3.0)
    assert sender.failures == 1  # a reservation alone is no delivery
    sender.received("a", CONFIRM, 3.0)
    assert sender.failures == 0
    sender.put(RELIABLE, 1, 4.0)
    sender.lost("a", 4.0)
    assert sender.on_time(6.0) == [Close("a"), ReportFailure(Failure.NO_RECEIVER, 7.0, 0)]


def test_messages_that_come_meanwhile_wait_behind_it() -> None:
    sender = stopped("a")
    assert sender.put(UNRELIABLE, 1, 2.5) == []
    assert sender.deadline() == 3.0
    sender.on_time(3.0)
    sender.received("a", AVAILABLE, 3.0)
    assert sender.received("a", YOURS, 3.0) == [SendData("a", 0, 1)]
    # the order is that of the queue: UNRELIABLE messages overtake nothing
    assert sender.received("a", CONFIRM, 3.0) == [Remove(1), SendData("a", 0, 1), Remove(1)]


def test_confirm_for_too_many_messages_confirms_those_sent_and_ends_the_connection() -> None:
    # 3.3: no more messages are sent there, or the next would be taken for confirmed
    sender = sending("a", count=2)
    assert sender.received("a", DataConfirm(2), 1.0) == [Remove(1), Close("a"), AskAvailability("a")]
    assert (sender.state, sender.receiver, sender.waiting) == (State.AWAITING_QUEUE_REQUEST, None, 1)
