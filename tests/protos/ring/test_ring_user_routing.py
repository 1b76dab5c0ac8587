"""Test the routing of a USER payload that has circulated the ring (ring.md 5.3 to 5.5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.ring import (
    NO_ID,
    Answer,
    CameBack,
    Deliver,
    Drop,
    DropReason,
    Frame,
    Operation,
    PassOn,
    Relay,
    Request,
    Settle,
    TakenOff,
    encode_frame,
)

ME, OTHER = b"10.0.0.1:8085", b"10.0.0.2:8085"
ID, ID_2 = b"\1" * 16, b"\2" * 16
REQUESTS = [Operation.CREATE_QUEUE, Operation.PUSH, Operation.PULL, Operation.DESTROY_QUEUE]
REPLIES = [Operation.ERROR, Operation.OK]


def frame(
    operation: Operation, sender: bytes = OTHER, request_id: bytes = ID, settles: bool = False
) -> Frame:
    return Frame(operation, sender, b"prices", b"", request_id, settles)


SETTLEMENT = frame(Operation.OK, settles=True)


@pytest.fixture
def relay() -> Relay:
    return Relay(ME)


# The node's own name (5.3)


@pytest.mark.parametrize("operation", REPLIES)
def test_reply_in_own_name_is_an_answer(relay: Relay, operation: Operation):  # ring.md 5.3
    reply = frame(operation, ME)
    assert relay.route(encode_frame(reply)) == Answer(reply)
    assert relay.route(encode_frame(reply)) == Answer(reply)  # the caller knows whether a client still waits


@pytest.mark.parametrize("operation", REQUESTS)
def test_my_own_request_came_back_unserved(relay: Relay, operation: Operation):  # ring.md 5.3
    request = frame(operation, ME)
    relay.put_on(encode_frame(request))
    assert relay.route(encode_frame(request)) == CameBack(request)


def test_own_settlement_that_returns_is_dropped(relay: Relay):  # ring.md 5.4
    settlement = frame(Operation.OK, ME, settles=True)
    assert relay.route(encode_frame(settlement)) == Drop(DropReason.NOBODY_HOLDS_IT)


@pytest.mark.parametrize("operation", Operation)
def test_unknown_frame_in_own_name_is_dropped(relay: Relay, operation: Operation):  # ring.md 5.3
    assert relay.route(encode_frame(frame(operation, ME, NO_ID))) == Drop(DropReason.NOT_MINE)


def test_names_are_compared_whole(relay: Relay):  # ring.md 1.2
    reply = frame(Operation.OK, ME + b"0")
    assert relay.route(encode_frame(reply)) == PassOn(reply)


# What others sent, under a request id (5.3, 5.4, 5.5)


@pytest.mark.parametrize("operation", REQUESTS)
def test_a_request_passes_once(relay: Relay, operation: Operation):  # ring.md 5.5
    request = frame(operation)
    assert relay.route(encode_frame(request)) == Request(request)
    # the store had refused it: it was sent again
    assert relay.route(encode_frame(request)) == Request(request)
    relay.passed(request)
    assert relay.route(encode_frame(request)) == Drop(DropReason.SEEN)


def test_a_request_that_was_carried_out_here_gets_its_reply_again(relay: Relay):  # ring.md 5.4
    request = frame(Operation.PUSH)
    relay.served(request)
    for _ in range(5):
        assert relay.route(encode_frame(request)) == Request(request, again=True)


@pytest.mark.parametrize("operation", REPLIES)
def test_a_reply_to_another_passes_once(relay: Relay, operation: Operation):  # ring.md 5.5
    reply = frame(operation)
    assert relay.route(encode_frame(reply)) == PassOn(reply)
    relay.passed(reply)
    assert relay.route(encode_frame(reply)) == Drop(DropReason.SEEN)


def test_own_reply_that_returns_is_dropped(relay: Relay):  # ring.md 5.5
    """Check this after the requesting node has ended."""
    relay.put_on(encode_frame(frame(Operation.OK)))
    assert relay.route(encode_frame(frame(Operation.OK))) == Drop(DropReason.SEEN)


def test_a_settlement_passes_once_or_settles_once(relay: Relay):  # ring.md 5.4, 5.5
    assert relay.route(encode_frame(SETTLEMENT)) == Settle(SETTLEMENT)
    relay.passed(SETTLEMENT)
    assert relay.route(encode_frame(SETTLEMENT)) == Drop(DropReason.SEEN)
    relay.served(SETTLEMENT)
    assert relay.route(encode_frame(SETTLEMENT)) == Drop(DropReason.SEEN)


def test_request_reply_and_settlement_of_one_id_are_three_frames(relay: Relay):  # ring.md 5.5
    pull, reply = frame(Operation.PULL), frame(Operation.OK)
    for each in (pull, reply):
        relay.passed(each)
    assert relay.route(encode_frame(SETTLEMENT)) == Settle(SETTLEMENT)
    relay.passed(SETTLEMENT)
    for each in (pull, reply, SETTLEMENT):
        assert relay.route(encode_frame(each)) == Drop(DropReason.SEEN)


def test_another_id_is_another_request(relay: Relay):  # ring.md 5.5
    relay.passed(frame(Operation.PUSH))
    other = frame(Operation.PUSH, request_id=ID_2)
    assert relay.route(encode_frame(other)) == Request(other)


def test_forgotten_frame_passes_again():  # ring.md 5.5
    relay = Relay(ME, remembered=10)
    frames = [frame(Operation.PUSH, request_id=number.to_bytes(16, "big")) for number in range(1, 12)]
    for each in frames:
        relay.passed(each)
    assert relay.route(encode_frame(frames[0])) == Request(frames[0])
    assert relay.route(encode_frame(frames[1])) == Drop(DropReason.SEEN)


# Without a request id, and no queue operation (5.5); see test_ring_ownerless_messages for messages without an owner


def test_request_without_id_is_served_each_time(relay: Relay):  # ring.md 5.3
    request, reply = frame(Operation.PUSH, request_id=NO_ID), frame(Operation.OK, request_id=NO_ID)
    relay.served(request)
    assert relay.route(encode_frame(request)) == Request(request)
    relay.put_on(encode_frame(reply))
    relay.passed(reply)
    assert relay.route(encode_frame(reply)) == PassOn(reply)


@pytest.mark.parametrize("payload", [b"", b"news", encode_frame(SETTLEMENT)[:-1]])
def test_other_payloads_go_to_the_inbox(relay: Relay, payload: bytes):  # ring.md 5.5
    assert relay.route(payload) == Deliver(payload)


def test_sender_takes_each_copy_off_once(relay: Relay):  # ring.md 5.5
    relay.put_on(b"news")
    relay.put_on(b"news")
    relay.put_on(b"other news")
    assert relay.route(b"news") == TakenOff()
    assert relay.route(b"news") == TakenOff()
    assert relay.route(b"news") == Deliver(b"news")  # another node's
    assert relay.route(b"other news") == TakenOff()


def test_copies_missing_before_a_mark_were_kept(relay: Relay):  # ring.md 5.5
    """Equal payloads of others are theirs."""
    assert not relay.wants_mark
    relay.put_on(b"news")
    assert relay.wants_mark
    mark = relay.mark()
    relay.put_on(b"news")
    assert relay.route(mark) == Drop(DropReason.MARK)
    assert relay.route(b"news") == TakenOff()
    assert not relay.wants_mark
    assert relay.route(b"news") == Deliver(b"news")


def test_copies_before_the_mark_are_taken_off(relay: Relay):  # ring.md 5.5
    for _ in range(2):
        relay.put_on(b"news")
    relay.put_on(b"old news")
    mark = relay.mark()
    assert [relay.route(b"news"), relay.route(b"news")] == [TakenOff()] * 2
    assert relay.route(b"news") == Deliver(b"news")
    assert relay.wants_mark
    relay.route(mark)
    assert not relay.wants_mark
    assert relay.route(b"old news") == Deliver(b"old news")


def test_a_mark_that_is_lost_is_followed_by_another(relay: Relay):  # ring.md 5.5
    relay.put_on(b"news")
    lost = relay.mark()
    relay.put_on(b"other news")
    mark = relay.mark()
    assert isinstance(relay.route(lost), Answer), "no request waits for it any more"
    assert relay.wants_mark
    assert relay.route(mark) == Drop(DropReason.MARK)
    assert not relay.wants_mark
    assert relay.route(mark) != Drop(DropReason.MARK)


def test_oldest_equal_copy_is_taken_off_first(relay: Relay):  # ring.md 5.5
    """Check that the copy behind the mark is still expected when the mark has returned."""
    relay.put_on(b"news")
    mark = relay.mark()
    relay.put_on(b"news")
    assert relay.route(b"news") == TakenOff()
    assert relay.route(mark) == Drop(DropReason.MARK)
    assert relay.wants_mark
    assert relay.route(b"news") == TakenOff()


def test_copies_before_a_lost_mark_stay_due(relay: Relay):  # ring.md 5.5
    relay.put_on(b"news")
    relay.put_on(b"old news")
    relay.mark()
    relay.put_on(b"news")
    mark = relay.mark()
    assert [relay.route(b"news"), relay.route(b"news")] == [TakenOff()] * 2
    assert relay.route(b"old news") == TakenOff()
    assert not relay.wants_mark
    assert relay.route(mark) == Drop(DropReason.MARK)


def test_others_pass_a_mark_on_once():  # ring.md 5.5
    me, other = Relay(ME, seed=b"me"), Relay(OTHER, seed=b"other")
    me.put_on(b"news")
    other.put_on(b"news")
    mark = me.mark()
    route = other.route(mark)
    assert isinstance(route, PassOn)
    assert route.frame is not None
    other.passed(route.frame)
    assert other.route(mark) == Drop(DropReason.SEEN)


def test_an_operation_that_an_application_put_on_goes_by_its_name(relay: Relay):  # ring.md 5.5
    request = frame(Operation.PUSH)
    relay.put_on(encode_frame(request))
    assert relay.route(encode_frame(request)) == Request(request)


@given(st.lists(st.binary(max_size=600) | st.builds(frame, st.sampled_from(Operation)).map(encode_frame)))
def test_any_payload_is_routed(payloads: list[bytes]):  # ring.md 5.5
    one, same = Relay(ME, max_laps=1, remembered=3), Relay(ME, max_laps=1, remembered=3)
    for payload in payloads:
        assert one.route(payload) == same.route(payload)
