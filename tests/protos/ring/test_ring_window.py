"""Messages that the successor has not answered (ring.md 2.2, 2.5, 4.5)."""

import pytest

from protos.ring import Window
from protos.types import LocalError, PeerError


def test_as_many_are_unanswered_as_the_window_has_room_for():  # ring.md 2.2
    window: Window[str] = Window(2, ack_s=5.0)
    assert window.room == 2
    window.sent("one", 0.0)
    window.sent("two", 0.0)
    assert window.room == 0
    with pytest.raises(LocalError):
        window.sent("three", 0.0)
    assert list(window.acknowledged(1, 1.0)) == ["one"]
    assert window.room == 1


def test_acknowledgements_answer_in_order_and_the_rest_is_for_the_next_link():  # ring.md 2.2
    window: Window[int] = Window(64, ack_s=5.0)
    for number in range(5):
        window.sent(number, 0.0)
    assert list(window.acknowledged(2, 1.0)) == [0, 1]
    assert list(window.acknowledged(0, 1.0)) == []
    assert window.unacknowledged() == [2, 3, 4]


def test_an_acknowledgement_for_nothing_comes_after_those_that_were_due():  # ring.md 2.5
    window: Window[str] = Window(64, ack_s=5.0)
    window.sent("one", 0.0)
    answered = window.acknowledged(2, 1.0)
    assert next(answered) == "one"
    with pytest.raises(PeerError, match="ack_for_nothing"):
        next(answered)
    with pytest.raises(PeerError, match="ack_for_nothing"):
        list(window.acknowledged(1, 1.0))


def test_a_link_is_late_if_nothing_is_answered_in_time():  # ring.md 4.5
    window: Window[str] = Window(1, ack_s=5.0)
    assert window.deadline() is None
    assert not window.is_late(1e9)
    window.sent("one", 10.0)
    assert window.deadline() == 15.0
    assert not window.is_late(14.9)
    assert window.is_late(15.0)
    list(window.acknowledged(1, 15.0))
    assert window.deadline() is None


def test_a_slow_successor_is_not_late_while_it_answers_at_all():  # ring.md 4.5
    window: Window[int] = Window(64, ack_s=5.0)
    for number in range(64):
        window.sent(number, 0.0)
    for answered in range(1, 64):
        now = answered * 4.0
        assert not window.is_late(now)
        list(window.acknowledged(1, now))
        assert window.deadline() == now + 5.0


def test_sending_does_not_extend_the_time_limit():  # ring.md 4.5
    window: Window[int] = Window(64, ack_s=5.0)
    for second in range(6):
        window.sent(second, float(second))
    assert window.is_late(5.0)


def test_idle_time_does_not_count():  # ring.md 4.5
    window: Window[str] = Window(64, ack_s=5.0)
    window.sent("one", 0.0)
    list(window.acknowledged(1, 1.0))
    window.sent("two", 100.0)
    assert window.deadline() == 105.0
