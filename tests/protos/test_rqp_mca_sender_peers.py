"""The sending MCA's peers, windows, unexpected confirms, and messages taken back (rqp_mca.md 3.1-3.5)."""

import pytest

from protos.rqp_mca import (
    AskAvailability,
    AvailableConfirm,
    Close,
    Confirm,
    DataConfirm,
    Failure,
    QueueConfirm,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    Sender,
    SenderSettings,
    State,
    ToDeadLetters,
)
from protos.types import LocalError
from tests.protos.rqp_mca_senders import (
    AVAILABLE,
    CONFIRM,
    QUEUE,
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

ALL_CONFIRMS = [AVAILABLE, YOURS, CONFIRM, AvailableConfirm(8), QueueConfirm(8)]


# --- unexpected confirms close their connection (3.3)


@pytest.mark.parametrize("confirm", [YOURS, CONFIRM, AvailableConfirm(8), QueueConfirm(8)])
def test_unexpected_while_all_are_asked(confirm: Confirm) -> None:
    sender = asking("a", "b", "c")
    sender.received("a", AVAILABLE, 0.0)
    assert sender.received("b", confirm, 0.5) == [Close("b")]
    assert sender.received("a", confirm, 0.5) == [Close("a")]  # no longer a candidate
    assert sender.deadline() == 2.0
    assert sender.received("c", AVAILABLE, 1.0) == [RequestQueue("c")]


def test_a_second_answer_is_unexpected() -> None:
    sender = asking("a", "b")
    sender.received("a", AVAILABLE, 0.0)
    assert sender.received("a", AVAILABLE, 0.0) == [Close("a")]


@pytest.mark.parametrize("confirm", [AVAILABLE, CONFIRM, AvailableConfirm(8), QueueConfirm(8)])
def test_unexpected_while_one_is_asked(confirm: Confirm) -> None:
    sender = requesting("a", "b", "c")
    assert sender.received("b", confirm, 0.5) == [Close("b")]
    assert sender.received("a", confirm, 1.0) == [Close("a"), RequestQueue("c")]
    assert sender.deadline() == 3.0


def test_a_reservation_by_a_candidate_that_was_not_asked_is_unexpected() -> None:
    sender = requesting("a", "b")
    assert sender.received("b", YOURS, 0.5) == [Close("b")]
    assert (sender.state, sender.receiver) == (State.AWAITING_QUEUE, None)


@pytest.mark.parametrize("confirm", [AVAILABLE, YOURS, AvailableConfirm(8), QueueConfirm(8)])
def test_unexpected_while_a_message_is_out(confirm: Confirm) -> None:
    sender = sending("a")
    failed = [Close("a"), ReportFailure(Failure.UNEXPECTED_CONFIRM, 1.0, 1), AskAvailability("a")]
    assert sender.received("a", confirm, 1.0) == failed


@pytest.mark.parametrize("confirm", ALL_CONFIRMS)
def test_unexpected_while_nothing_is_awaited(confirm: Confirm) -> None:
    sender = settled("a")
    assert sender.received("a", confirm, 1.0) == [Close("a")]
    assert (sender.state, sender.receiver) == (State.IDLE, None)
    assert sender.put(RELIABLE, 1, 2.0) == [AskAvailability("a")]


@pytest.mark.parametrize("confirm", ALL_CONFIRMS)
def test_input_of_a_closed_connection_is_ignored(confirm: Confirm) -> None:
    for sender in (idle("a", "b"), settled("a", "b"), sending("a", "b"), stopped("a", "b")):
        before = (sender.state, sender.receiver, sender.deadline(), sender.unconfirmed)
        assert sender.received("b", confirm, 2.5) == []
        assert sender.lost("b", 2.5) == []
        assert (sender.state, sender.receiver, sender.deadline(), sender.unconfirmed) == before


# --- the list of peers (3.4)


def test_the_known_receiver_is_forgotten_when_its_connection_ends() -> None:
    sender = settled("a", "b")
    assert sender.lost("a", 5.0) == []
    assert (sender.receiver, sender.deadline()) == (None, None)
    assert sender.put(RELIABLE, 1, 6.0) == [AskAvailability("a"), AskAvailability("b")]


def test_the_known_receiver_is_forgotten_when_the_list_drops_it() -> None:
    sender = settled("a", "b")
    assert sender.peers_changed({"b": 1}, 5.0) == [Close("a")]
    assert sender.put(RELIABLE, 1, 6.0) == [AskAvailability("b")]


def test_a_list_that_keeps_the_known_receiver_changes_nothing() -> None:
    sender = settled("a", "b")
    assert sender.peers_changed({"c": 1, "a": 1}, 5.0) == []
    assert sender.put(RELIABLE, 1, 6.0) == [SendData("a", 0, 1)]


def test_dropped_receiver_confirms_but_gets_no_new_messages() -> None:
    sender = sending("a", "b", count=4, window=2)
    assert sender.peers_changed({"b": 1}, 1.0) == []
    assert sender.received("a", CONFIRM, 2.0) == [Remove(1)]
    assert sender.received("a", CONFIRM, 3.0) == [Remove(1), Close("a"), AskAvailability("b")]
    assert (sender.state, sender.waiting) == (State.AWAITING_QUEUE_REQUEST, 2)


def test_messages_sent_to_a_dropped_receiver_can_time_out() -> None:
    sender = sending("a", "b")
    sender.peers_changed({"b": 1}, 1.0)
    failed = [Close("a"), ReportFailure(Failure.DATA_TIMEOUT, 10.0, 1), AskAvailability("b")]
    assert sender.on_time(10.0) == failed


def test_while_all_are_asked_the_list_takes_effect_at_once() -> None:
    sender = asking("a", "b")
    assert sender.peers_changed({"b": 1, "c": 1}, 1.0) == [AskAvailability("c"), Close("a")]
    assert sender.deadline() == 2.0
    sender.received("c", AVAILABLE, 1.5)
    assert sender.received("b", AVAILABLE, 1.5) == [RequestQueue("c")]


def test_a_dropped_peer_may_be_the_last_that_was_waited_for() -> None:
    sender = asking("a", "b")
    sender.received("a", AVAILABLE, 0.5)
    assert sender.peers_changed({"a": 1}, 1.0) == [Close("b"), RequestQueue("a")]


def test_while_one_is_asked_a_dropped_candidate_is_none() -> None:
    sender = requesting("a", "b", "c")
    assert sender.peers_changed({"a": 1, "c": 1, "d": 1}, 1.0) == [Close("b")]  # new peers come too late
    assert sender.peers_changed({"c": 1}, 1.5) == [Close("a"), RequestQueue("c")]
    assert sender.peers_changed({}, 1.5) == [Close("c"), ReportFailure(Failure.NOT_RESERVED, 2.5, 0)]


def test_a_new_peer_ends_a_pause() -> None:
    sender = stopped("a")
    assert sender.peers_changed({}, 2.2) == []
    assert sender.peers_changed({"b": 1}, 2.5) == [AskAvailability("b")]
    assert sender.deadline() == 4.5
    # but the next pause is longer all the same
    assert sender.on_time(4.5) == [Close("b"), ReportFailure(Failure.NO_RECEIVER, 6.5, 0)]


# --- windows (3.3)


def test_a_window_is_filled_and_kept_full() -> None:
    sender = requesting("a", count=5, window=3)
    assert sender.received("a", YOURS, 0.0) == [SendData("a", 0, 3)]
    assert sender.received("a", DataConfirm(2), 1.0) == [Remove(2), SendData("a", 1, 2)]
    assert (sender.unconfirmed, sender.waiting) == (3, 3)
    assert sender.put(RELIABLE, 1, 2.0) == []
    assert sender.received("a", DataConfirm(3), 3.0) == [Remove(3), SendData("a", 0, 1)]
    assert sender.received("a", CONFIRM, 3.0) == [Remove(1)]
    assert sender.state is State.IDLE


def test_window_with_room_sends_new_messages_at_once() -> None:
    sender = sending("a", window=3)
    assert sender.put(RELIABLE, 1, 4.0) == [SendData("a", 1, 1)]
    assert sender.deadline() == 10.0  # still that of the first


def test_each_confirm_gives_the_next_message_its_time() -> None:
    sender = sending("a", count=3, window=3)
    assert sender.received("a", CONFIRM, 9.0) == [Remove(1)]
    assert sender.deadline() == 19.0


def test_a_break_makes_all_unconfirmed_messages_unsent() -> None:
    sender = sending("a", count=5, window=3)
    sender.received("a", CONFIRM, 1.0)
    assert sender.lost("a", 2.0) == [
        ReportFailure(Failure.CONNECTION_LOST, 2.0, 3),
        AskAvailability("a"),
    ]
    assert (sender.unconfirmed, sender.waiting) == (0, 4)
    sender.received("a", AVAILABLE, 2.0)
    assert sender.received("a", YOURS, 2.0) == [SendData("a", 0, 3)]


def test_an_unreliable_message_waits_for_those_before_it_and_holds_up_those_behind() -> None:
    sender = sending("a", window=3)
    assert sender.put(UNRELIABLE, 2, 0.0) == []
    assert sender.put(RELIABLE, 1, 0.0) == []
    sent = [Remove(1), SendData("a", 0, 2), Remove(2), SendData("a", 0, 1)]
    assert sender.received("a", CONFIRM, 1.0) == sent


def test_each_peer_has_its_own_window() -> None:
    sender = idle()
    sender.peers_changed({"a": 1, "b": 4}, 0.0)
    sender.put(RELIABLE, 5, 0.0)
    sender.received("b", AVAILABLE, 0.0)
    sender.received("a", AVAILABLE, 0.0)
    assert sender.received("b", YOURS, 0.0) == [Close("a"), SendData("b", 0, 4)]
    assert sender.peers_changed({"a": 1, "b": 5}, 0.0) == [SendData("b", 4, 1)]
    assert sender.peers_changed({"a": 1, "b": 2}, 0.0) == []
    assert sender.received("b", DataConfirm(3), 0.0) == [Remove(3)]


# --- confirms that arrived before their data


def test_a_confirm_that_came_before_anything_was_out_confirms_nothing() -> None:
    sender = requesting("a")
    assert sender.received("a", YOURS, 1.0) == [SendData("a", 0, 1)]
    failed = [Close("a"), ReportFailure(Failure.UNEXPECTED_CONFIRM, 1.0, 1), AskAvailability("a")]
    assert sender.received("a", DataConfirm(1), 1.0, awaited=0) == failed


def test_confirms_apply_to_messages_sent_before_they_arrived() -> None:
    sender = sending("a", count=5, window=2)
    assert sender.received("a", DataConfirm(1), 1.0, awaited=2) == [Remove(1), SendData("a", 1, 1)]
    failed = [Close("a"), ReportFailure(Failure.UNEXPECTED_CONFIRM, 1.0, 1), AskAvailability("a")]
    assert sender.received("a", DataConfirm(2), 1.0, awaited=1) == [Remove(1), *failed]
    assert (sender.waiting, sender.unconfirmed) == (3, 0)


def test_a_peer_that_broke_the_protocol_is_named_for_it() -> None:
    sender = sending("a")
    asked = [ReportFailure(Failure.PROTOCOL_ERROR, 1.0, 1), AskAvailability("a")]
    assert sender.lost("a", 1.0, Failure.PROTOCOL_ERROR) == asked


# --- misuse, and settings


@pytest.mark.parametrize("count", [0, -1])
def test_no_messages_cannot_be_put(count: int) -> None:
    with pytest.raises(LocalError, match="cannot be put"):
        idle("a").put(RELIABLE, count, 0.0)


def test_a_window_below_one_is_refused() -> None:
    sender = idle("a")
    with pytest.raises(LocalError, match="window"):
        sender.peers_changed({"a": 1, "b": 0}, 0.0)
    assert sender.put(RELIABLE, 1, 0.0) == [AskAvailability("a")]


def test_all_times_are_settings() -> None:
    sender = Sender(QUEUE, SenderSettings(1.0, 3.0, 5.0, 0.5, 0.75))
    sender.peers_changed({"a": 1}, 0.0)
    sender.put(UNRELIABLE, 1, 0.0)
    assert sender.deadline() == 1.0
    sender.received("a", AVAILABLE, 1.0)
    assert sender.deadline() == 4.0
    assert sender.on_time(4.0) == [Close("a"), ToDeadLetters(Failure.NOT_RESERVED)]
    sender.put(RELIABLE, 1, 5.0)
    assert sender.on_time(6.0) == [Close("a"), ReportFailure(Failure.NO_RECEIVER, 6.5, 0)]
    sender.on_time(6.5)
    sender.received("a", AVAILABLE, 7.0)
    sender.received("a", YOURS, 7.0)
    assert sender.deadline() == 12.0
    assert sender.on_time(12.0) == [Close("a"), ReportFailure(Failure.DATA_TIMEOUT, 12.75, 1)]
