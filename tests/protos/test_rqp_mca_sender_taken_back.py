"""Messages taken back from the sending MCA: all that are not in flight, the first of them, or all (rqp_mca.md 3.6)."""

import pytest

from protos.rqp_mca import (
    AskAvailability,
    Close,
    DataConfirm,
    Failure,
    Remove,
    SendData,
    State,
    ToDeadLetters,
)
from protos.types import LocalError
from tests.protos.rqp_mca_senders import RELIABLE, UNRELIABLE, asking, requesting, sending, settled, stopped


def test_withdrawal_keeps_messages_that_were_sent() -> None:
    sender = sending("a", count=5, window=2)
    assert sender.withdraw() == []
    assert (sender.waiting, sender.unconfirmed, sender.state) == (2, 2, State.AWAITING_MESSAGE)
    assert sender.received("a", DataConfirm(2), 1.0) == [Remove(2)]
    assert sender.withdraw() == []
    assert (sender.state, sender.receiver, sender.deadline()) == (State.IDLE, "a", None)


def test_withdraw_ends_the_search() -> None:
    assert stopped("a").withdraw() == []
    assert asking("a", "b").withdraw() == [Close("a"), Close("b")]
    assert requesting("a", "b").withdraw() == [Close("a"), Close("b")]
    for sender in (stopped("a"), asking("a", "b"), requesting("a", "b")):
        sender.withdraw()
        assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)
        sender.put(RELIABLE, 1, 9.0)
        assert sender.deadline() == 11.0


def test_expired_are_the_first_that_are_not_out() -> None:
    """Check that expired messages are the first ones not in flight; others are not affected (3.6)."""
    sender = sending("a", count=5, window=2)
    assert sender.expire(2) == []
    assert (sender.waiting, sender.unconfirmed, sender.deadline()) == (3, 2, 10.0)
    assert sender.received("a", DataConfirm(2), 1.0) == [Remove(2), SendData("a", 0, 1)]
    for sender, state in (
        (asking("a", count=3), State.AWAITING_QUEUE_REQUEST),
        (stopped("a"), State.STOPPED),
    ):
        sender.put(UNRELIABLE, 2, 2.5)
        due = sender.deadline()
        assert sender.expire(sender.waiting - 1) == []
        assert (sender.waiting, sender.state, sender.deadline()) == (1, state, due)
    assert sender.on_time(3.0) == [AskAvailability("a")]
    assert sender.on_time(5.0) == [Close("a"), ToDeadLetters(Failure.NO_RECEIVER)], "the last one, UNRELIABLE"


def test_expiry_of_all_ends_the_search() -> None:
    sender = asking("a", "b", count=3)
    assert sender.expire(3) == [Close("a"), Close("b")]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)


def test_abandon_takes_back_messages_that_are_out() -> None:
    sender = sending("a", count=5, window=2)
    assert sender.abandon() == [Close("a")]
    assert (sender.state, sender.deadline(), sender.waiting) == (State.IDLE, None, 0)
    assert (sender.receiver, sender.unconfirmed) == (None, 0)
    assert settled("a").abandon() == []
    assert asking("a").abandon() == [Close("a")]


@pytest.mark.parametrize("count", [0, -1, 4])
def test_only_pending_messages_can_expire(count: int) -> None:
    with pytest.raises(LocalError, match=f"{count} of 3 messages cannot"):
        sending("a", count=5, window=2).expire(count)
