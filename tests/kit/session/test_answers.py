"""Test that replies keep the order of requests."""

import random

from hypothesis import given
from hypothesis import strategies as st

from services.kit.session.answers import Answers


def test_reply_waits_for_earlier_replies() -> None:
    answers = Answers()
    first, second, third = (answers.expect(0.0) for _ in range(3))
    second.reply = b"2"
    assert answers.take_known() == b""
    first.reply = b"1"
    assert answers.take_known() == b"12"
    assert answers == [third]


def test_empty_reply_counts_as_a_reply() -> None:
    answers = Answers()
    answers.expect(0.0).reply = b""
    assert answers.take_known() == b""
    assert not answers


@given(st.integers(1, 20), st.randoms())
def test_replies_keep_their_order(number: int, rng: random.Random) -> None:
    answers = Answers()
    slots = [answers.expect(0.0) for _ in range(number)]
    sent = b""
    for index in rng.sample(range(number), number):
        slots[index].reply = bytes([index])
        sent += answers.take_known()
    assert sent == bytes(range(number))
    assert not answers


def test_replies_after_the_end_are_dropped() -> None:
    """Check that replies after the end are dropped.

    Earlier ones are still sent in order; a second end changes nothing.
    """
    answers = Answers()
    first, last, behind, far_behind = (answers.expect(0.0) for _ in range(4))
    behind.reply = b"behind"
    answers.end_with(last)
    last.reply = b"last"
    assert answers.take_known() == b""
    answers.end_with(far_behind)
    first.reply = b"first "
    assert answers.take_known() == b"first last"
    assert answers == []
