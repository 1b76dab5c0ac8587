"""Test that receivers that failed are asked last (rqp_mca.md 3.5). A failure prints how to repeat it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_mca import (
    Action,
    AskAvailability,
    AvailableConfirm,
    Close,
    DataConfirm,
    Failure,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    Sender,
    State,
)
from tests.protos.rqp_mca_senders import AVAILABLE, CONFIRM, RELIABLE, YOURS, asking, requesting, sending


def answered(sender: Sender, *peers: str, now: float = 0.0) -> list[Action]:
    """Let peers answer in this order that they have the queue."""
    actions: list[Action] = []
    for peer in peers:
        actions = sender.received(peer, AVAILABLE, now)
    return actions


def test_failed_receiver_is_asked_last_even_if_it_answers_first() -> None:
    sender = sending("a", "b", "c")
    sender.lost("a", 1.0)
    assert answered(sender, "a", "b", "c", now=1.0) == [RequestQueue("b")]
    sender.received("b", YOURS, 1.0)
    assert sender.received("b", CONFIRM, 2.0) == [Remove(1)]


@pytest.mark.parametrize("how", ["lost", "late", "lie"])
def test_every_failure_ranks_a_receiver_last(how: str) -> None:
    sender = sending("a", "b")
    if how == "lost":
        sender.lost("a", 1.0, Failure.PROTOCOL_ERROR)
    elif how == "late":
        sender.on_time(10.0)
    else:
        sender.received("a", AvailableConfirm(8), 1.0)
    assert answered(sender, "a", "b", now=10.0) == [RequestQueue("b")]


def test_receiver_that_did_not_reserve_is_asked_last() -> None:
    sender = requesting("a", "b")
    assert sender.on_time(2.0) == [Close("a"), RequestQueue("b")]
    sender.received("b", YOURS, 2.0)
    sender.received("b", CONFIRM, 2.0)
    sender.lost("b", 3.0)  # no message was in flight: no failure
    sender.put(RELIABLE, 1, 4.0)
    assert answered(sender, "a", "b", now=4.0) == [RequestQueue("b")]


def test_last_failed_receiver_is_asked_last() -> None:
    sender = requesting("a", "b", "c")
    sender.lost("a", 0.0)
    sender.lost("b", 0.0)
    sender.received("c", YOURS, 0.0)
    sender.lost("c", 1.0)
    assert answered(sender, "c", "b", "a", now=1.0) == [RequestQueue("a")]
    assert sender.lost("a", 1.0) == [RequestQueue("b")]
    assert sender.lost("b", 1.0) == [RequestQueue("c")]


def test_delivery_clears_a_failure() -> None:
    sender = sending("a", "b")
    sender.lost("a", 1.0)
    answered(sender, "a", "b", now=1.0)
    assert sender.lost("b", 1.0) == [RequestQueue("a")]
    sender.received("a", YOURS, 1.0)
    assert sender.received("a", CONFIRM, 1.0) == [Remove(1)]
    sender.lost("a", 2.0)
    sender.put(RELIABLE, 1, 2.0)
    assert answered(sender, "b", "a", now=2.0) == [RequestQueue("a")]  # b has still failed


def test_delivery_restores_the_rank() -> None:
    """Check that a delivery restores the rank of a peer that failed (3.5)."""
    sender = sending("a", "b")
    sender.lost("a", 1.0)
    answered(sender, "a", now=1.0)
    assert RequestQueue("a") in sender.on_time(3.0), "no other has answered in time"
    sender.received("a", YOURS, 3.0)
    assert sender.received("a", CONFIRM, 3.0) == [Remove(1)]
    sender.lost("a", 4.0)
    sender.put(RELIABLE, 1, 4.0)
    assert answered(sender, "a", "b", now=4.0) == [RequestQueue("a")]


def test_removed_receiver_returns_without_failures() -> None:
    sender = sending("a", "b")
    sender.lost("a", 1.0)
    sender.peers_changed({"b": 1}, 1.0)
    sender.peers_changed({"b": 1, "a": 1}, 1.0)
    assert answered(sender, "a", "b", now=1.0) == [RequestQueue("a")]


def test_failure_after_removal_is_forgotten() -> None:
    sender = sending("a", "b")
    sender.peers_changed({"b": 1}, 0.5)
    sender.lost("a", 1.0)
    sender.peers_changed({"b": 1, "a": 1}, 1.0)
    assert answered(sender, "a", "b", now=1.0) == [RequestQueue("a")]


def test_only_receiver_is_asked_again() -> None:
    sender = sending("a")
    assert sender.lost("a", 1.0) == [ReportFailure(Failure.CONNECTION_LOST, 1.0, 1), AskAvailability("a")]
    assert answered(sender, "a", now=1.0) == [RequestQueue("a")]


HOW = ["refuses", "reserves and breaks", "reserves and is silent", "reserves and lies", "takes one"]


@given(st.lists(st.sampled_from(HOW), min_size=1, max_size=5), st.data())
def test_good_receiver_is_reached_among_failing_ones(bad: list[str], data: st.DataObject) -> None:
    """Check that a good receiver is reached among failing ones, each of which has at most one turn.

    Bad ones fail in one way each, and answer before the good one.
    """
    peers = {f"bad{number}": how for number, how in enumerate(bad)}
    sender = asking(*peers, "good", count=len(bad) + 1)
    turns: list[str] = []
    while sender.receiver != "good":
        if sender.state is State.STOPPED:
            due = sender.deadline()
            assert due is not None
            sender.on_time(due)
        actions = answered(sender, *data.draw(st.permutations(sorted(peers))), "good")
        while sender.state is State.AWAITING_QUEUE:
            (peer,) = (action.peer for action in actions if isinstance(action, RequestQueue))
            turns.append(peer)
            actions = take_turn(sender, peer, peers.get(peer, "good"))
    assert len(set(turns)) == len(turns) <= len(peers) + 1


def take_turn(sender: Sender, peer: str, how: str) -> list[Action]:
    """Let the requested peer use its turn in the given way."""
    if how == "refuses":
        return sender.lost(peer, 0.0)
    actions = sender.received(peer, YOURS, 0.0)
    assert any(isinstance(action, SendData) for action in actions)
    match how:
        case "reserves and breaks":
            return sender.lost(peer, 0.0)
        case "reserves and is silent":
            due = sender.deadline()
            assert due is not None
            return sender.on_time(due)
        case "reserves and lies":
            return sender.received(peer, YOURS, 0.0)
        case "takes one":
            sender.received(peer, DataConfirm(1), 0.0)
            return sender.lost(peer, 0.0)
    return actions
