"""Messages that keep circulating: sent again and again, or without an owner (ring.md 5.7)."""

from __future__ import annotations

import pytest

from protos.ring import (
    NO_ID,
    Deliver,
    Drop,
    DropReason,
    Frame,
    Operation,
    PassOn,
    Questions,
    Relay,
    Request,
    TakenOff,
    encode_frame,
    parse_frame,
)

ME, OTHER = b"10.0.0.1:8085", b"10.0.0.2:8085"
PUSH = encode_frame(Frame(Operation.PUSH, OTHER, b"prices", b"7"))
PASSED_ON = [
    pytest.param(b"news", id="no operation"),
    pytest.param(b"", id="empty"),
    pytest.param(PUSH, id="no request id"),
]


def questions_for(relay: Relay, payload: bytes) -> Questions:
    """Pass the payload on; return the questions sent with it."""
    route = relay.route(payload)
    assert isinstance(route, Deliver | Request | PassOn)
    return route.questions


def asked(relay: Relay, payload: bytes) -> Questions:
    """Return the first questions about the payload."""
    for _ in range(100):
        questions = questions_for(relay, payload)
        if questions != Questions():
            return questions
    raise AssertionError("it never asked")


@pytest.mark.parametrize("payload", PASSED_ON)
@pytest.mark.parametrize("max_laps", [1, 3])
def test_payload_passes_max_laps_times_before_a_question(payload: bytes, max_laps: int):  # ring.md 5.7
    relay = Relay(ME, max_laps)
    for _ in range(max_laps):
        assert questions_for(relay, payload) == Questions()
    assert questions_for(relay, payload) != Questions()


@pytest.mark.parametrize("payload", PASSED_ON)
def test_payload_after_its_returned_question_is_taken_off(payload: bytes):  # ring.md 5.7
    relay = Relay(ME, max_laps=1)
    questions = asked(relay, payload)
    assert relay.route(questions.before) == Drop(DropReason.NOBODY_CLAIMS)
    assert relay.route(payload) == Drop(DropReason.LAPS)
    assert relay.route(questions.behind) == Drop(DropReason.NOBODY_CLAIMS)
    assert questions_for(relay, payload) == Questions()  # its count starts again


@pytest.mark.parametrize("payload", PASSED_ON)
def test_payload_outside_its_questions_is_kept(payload: bytes):  # ring.md 5.7
    """Check that a payload outside its questions is kept.

    An original took it off, and sends it again later: a heartbeat.
    """
    relay = Relay(ME, max_laps=1)
    for _ in range(100):
        questions = questions_for(relay, payload)
        for question in (questions.before, questions.behind):
            assert not question or relay.route(question) == Drop(DropReason.NOBODY_CLAIMS)


@pytest.mark.parametrize("payload", PASSED_ON)
def test_payload_is_kept_until_its_question_returns(payload: bytes):  # ring.md 5.7
    """Check that a payload is kept until its question returns.

    It is a heartbeat of a live sender, which took the questions off the ring.
    """
    relay = Relay(ME, max_laps=3)
    asked_at = [number for number in range(1, 1000) if questions_for(relay, payload) != Questions()]
    assert asked_at == [4, 7, 13, 25, 49, 97, 193, 385, 769]  # without an answer: less and less often


def test_other_payloads_between_the_questions_do_not_matter():  # ring.md 5.7
    relay = Relay(ME, max_laps=1)
    relay.route(asked(relay, b"news").before)
    assert relay.route(b"other news") == Deliver(b"other news")
    assert relay.route(b"news") == Drop(DropReason.LAPS)
    assert relay.route(b"news") == Deliver(b"news")  # one copy for one answer


def test_sender_claims_its_payload():  # ring.md 5.7
    asks, claims = Relay(ME, max_laps=1), Relay(OTHER)
    claims.put_on(b"news")
    claims.put_on(b"news")
    questions = asked(asks, b"news")
    assert claims.route(questions.before) == Drop(DropReason.CLAIMED)
    assert claims.route(b"news") == TakenOff()
    assert claims.route(questions.behind) == Drop(DropReason.CLAIMED)
    assert claims.route(b"news") == TakenOff()
    behind = parse_frame(questions.behind)
    assert behind is not None
    assert claims.route(questions.behind) == PassOn(behind)


def test_the_question_about_a_frame_is_for_its_sender():  # ring.md 5.7
    """Check that the question about a frame is for its sender.

    A live sender takes it off, as every node does with its own name (5.3).
    """
    for questions, name in ((asked(Relay(ME), PUSH), OTHER), (asked(Relay(ME), b"news"), ME)):
        for question in (questions.before, questions.behind):
            frame = parse_frame(question)
            assert frame is not None
            assert (frame.operation, frame.sender, frame.queue) == (Operation.ERROR, name, b"ring/laps")
            assert frame.request_id != NO_ID


def test_a_question_passes_each_other_node_once():  # ring.md 5.5, 5.7
    question = asked(Relay(ME), b"news").before
    frame = parse_frame(question)
    assert frame is not None
    relay = Relay(OTHER)
    assert relay.route(question) == PassOn(frame)
    relay.passed(frame)
    assert relay.route(question) == Drop(DropReason.SEEN)


def test_other_questions_delay_the_own():  # ring.md 5.7
    """Check that other questions delay the own one: two nodes that ask about one copy would take off two."""
    asks, hears = Relay(ME, max_laps=3), Relay(OTHER, max_laps=3)
    for _ in range(3):
        questions_for(hears, b"news")
    hears.route(asked(asks, b"news").before)
    for _ in range(3):
        assert questions_for(hears, b"news") == Questions()
    assert questions_for(hears, b"news") != Questions()


def test_frame_like_a_question_is_a_reply():  # ring.md 5.7
    relay = Relay(ME)
    relay.put_on(b"news")
    for number, message in enumerate([b"no such queue", b"sixteen letters!"], 1):
        reply = Frame(Operation.ERROR, OTHER, b"ring/laps", message, bytes([number]) * 16)
        assert relay.route(encode_frame(reply)) == PassOn(reply)


def test_max_laps_0_asks_no_questions():  # ring.md 5.5
    relay = Relay(ME, max_laps=0)
    for _ in range(100):
        assert questions_for(relay, b"news") == Questions()


def test_restarted_node_uses_new_question_ids():  # ring.md 5.7
    one, next_one = Relay(ME, seed=b"one life"), Relay(ME, seed=b"the next")
    first, second = asked(one, b"news"), asked(next_one, b"news")
    assert len({first.before, first.behind, second.before, second.behind}) == 4


def test_forgotten_payload_counts_from_0():  # ring.md 5.7
    relay = Relay(ME, max_laps=1, remembered=10)
    for _ in range(5):
        for number in range(11):
            assert questions_for(relay, b"%d" % number) == Questions()
