"""Rings without a known leader: proposals, valid and invalid ones, and the opening of the ring (ring.md 4.6)."""

from __future__ import annotations

from protos.ring import HeadState, Leader, LinkBroken, Loop, SendBeacon, TailState
from protos.ring.actions import Action, CloseInbound, CloseOutbound
from protos.ring.messages import OTHERS_TTL
from protos.ring.node import Node
from tests.protos.ring.node_samples import (
    BROKEN_ME,
    BROKEN_OTHER,
    FIND_ME,
    FIND_OTHER,
    HIGH,
    HIGHER,
    LOW,
    ME,
    hear,
    in_ring,
    leading,
    linked,
    said,
    started,
    tried,
    waiting,
)

FOR_HIGH, FOR_HIGHER = Leader(HIGH, OTHERS_TTL), Leader(HIGHER, OTHERS_TTL)


def vacant(*others: bytes) -> Node:
    """Return a node in a ring without leader since 0, which has heard of others."""
    node = in_ring()
    node.members.clear()
    node.members.update(dict.fromkeys(others, 0.0))
    said(node)
    return node


def proposals_until(node: Node, end: float) -> list[tuple[float, Loop]]:
    """Return the names proposed and when."""
    made = []
    while (now := node.election.deadline()) is not None and now < end:
        node.on_time(now)
        made += [(now, loop) for loop in said(node) if isinstance(loop, Leader) and loop.ttl]
    return made


def test_vacancy_starts_with_a_break_and_proposes_after_60_to_120_s() -> None:
    node = leading()
    hear(node, BROKEN_OTHER, 100.0)
    due = node.election.deadline()
    assert due is not None
    assert 160.0 <= due <= 220.0


def test_vacancy_proposes_itself_and_others_in_turn() -> None:
    node = vacant(LOW, HIGH, HIGHER)
    made = proposals_until(node, 290.0)
    first = made[0][0]
    assert made[:6] == [
        (first, Leader(ME)),
        (first, FOR_HIGHER),
        (first + 60.0, Leader(ME)),
        (first + 60.0, FOR_HIGH),
        (first + 120.0, Leader(ME)),
        (first + 120.0, FOR_HIGHER),
    ]


def test_open_ring_proposes_no_others() -> None:
    node = vacant(HIGH)
    node.inbound_lost(1, "closed", 1.0)
    assert {loop for _, loop in proposals_until(node, 250.0)} == {Leader(ME)}


def test_proposal_by_another_node_makes_the_node_propose_itself() -> None:
    node = in_ring()
    hear(node, Leader(ME, OTHERS_TTL), 1.0)
    assert not node.election.is_leader
    assert said(node) == [Leader(ME)]


def test_accepted_proposal_ends_the_vacancy() -> None:
    node = vacant()
    hear(node, Leader(HIGH), 10.0)
    node.beacon(FIND_OTHER, 10.0)
    said(node)
    assert proposals_until(node, 600.0) == []


def test_unconfirmed_leader_is_dropped() -> None:
    node = vacant(HIGHER)
    hear(node, Leader(HIGH), 10.0)
    said(node)
    made = proposals_until(node, 210.0)
    assert made[0][1] == Leader(ME)
    assert 140.0 <= made[0][0] <= 200.0
    hear(node, Leader(HIGH), 211.0)  # that proposes itself again and again
    assert FOR_HIGHER in [loop for _, loop in proposals_until(node, 300.0)]


def test_confirmed_leader_ends_the_vacancy() -> None:
    node = vacant()
    hear(node, Leader(HIGH), 10.0)
    proposals_until(node, 210.0)
    node.beacon(FIND_OTHER, 210.0)
    hear(node, Leader(HIGH), 211.0)
    node.beacon(FIND_OTHER, 270.0)
    said(node)
    assert proposals_until(node, 800.0) == []


def test_find_within_3_s_answers_a_proposal() -> None:
    node = vacant(HIGH)
    (now, _), *_ = proposals_until(node, 121.0)
    node.beacon(FIND_OTHER, now + 1.0)
    assert node.election.leader == HIGH
    assert proposals_until(node, 600.0) == []


def test_find_after_a_ring_change_is_no_answer() -> None:
    node = vacant(HIGH)
    (now, _), *_ = proposals_until(node, 121.0)
    node.beacon(FIND_OTHER, now + 1.0)
    hear(node, BROKEN_OTHER, now + 1.1)
    node.beacon(FIND_OTHER, now + 1.2)
    assert Leader(ME) in [loop for _, loop in proposals_until(node, now + 130.0)]


def test_late_find_is_no_answer() -> None:
    node = vacant(HIGH)
    (now, _), *_ = proposals_until(node, 121.0)
    node.beacon(FIND_OTHER, now + 10.0)
    assert node.election.leader == ME


def test_circulating_proposal_is_taken_off_and_not_proposed_again() -> None:  # 2.3
    node = vacant(HIGH)
    for number, ttl in enumerate([60, 52]):
        hear(node, Leader(HIGH, ttl), 1.0 + number / 10)
        assert node.election.leader == HIGH
    hear(node, Leader(HIGH, 44), 1.2)
    assert node.election.leader == ME
    assert said(node) == [Leader(HIGH, 59)]  # once for the three that waited
    hear(node, Leader(HIGH, 36), 1.3)
    assert said(node) == [Leader(ME)]
    assert FOR_HIGH not in [loop for _, loop in proposals_until(node, 290.0)]


def test_circulating_name_unheard_for_10_minutes_is_forgotten() -> None:
    """Check that a circulating name unheard for 10 minutes is forgotten, and others are remembered (4.6)."""
    for heard_at, is_remembered in ((0.0, False), (10.0, True)):
        node = vacant(LOW, HIGH)
        node.members[HIGH] = heard_at
        for number, ttl in enumerate([60, 52, 44]):
            hear(node, Leader(HIGH, ttl), 605.0 + number / 10)
        assert (HIGH in node.members) is is_remembered
        assert LOW in node.members


def test_circulating_name_is_proposed_again_after_a_ring_change() -> None:
    node = vacant(HIGH)
    for number, ttl in enumerate([60, 52, 44, 36]):
        hear(node, Leader(HIGH, ttl), 1.0 + number / 10)
    hear(node, LinkBroken(LOW), 2.0)
    said(node)
    assert FOR_HIGH in [loop for _, loop in proposals_until(node, 290.0)]


def test_circulating_link_broken_is_taken_off() -> None:  # 2.3
    node = in_ring()
    for number, ttl in enumerate([250, 242, 234]):
        hear(node, LinkBroken(HIGH, ttl), number / 10)
        assert said(node) == [LinkBroken(HIGH, ttl - 1)]
    hear(node, LinkBroken(HIGH, 226), 0.3)
    assert said(node) == []


def test_follower_drops_lesser_proposals_of_others() -> None:
    node = in_ring()
    hear(node, Leader(HIGHER), 1.0)
    said(node)
    hear(node, FOR_HIGH, 2.0)
    assert said(node) == []
    hear(node, Leader(HIGH), 3.0)  # its own name is an exception
    assert said(node) == [Leader(HIGH, 254)]


def test_vacancy_of_300_s_opens_the_ring() -> None:
    node = vacant()
    proposals_until(node, 290.0)
    node.take_actions()
    due = node.election.deadline()
    assert due is not None
    node.on_time(due)
    actions = node.take_actions()
    assert SendBeacon(FIND_ME) in actions
    assert CloseOutbound("the ring has no leader") in actions
    assert node.head.state is HeadState.LISTENING
    assert Leader(ME) in waiting(node, due, LOW)


SILENT = CloseInbound(1, "the ring has no leader, and the predecessor is silent")


def lost_from(node: Node) -> tuple[float, list[Action]]:
    """Return when the ring is opened next, and the resulting actions."""
    node.take_actions()
    while True:
        due = node.election.deadline()
        assert due is not None
        node.on_time(due)
        actions = node.take_actions()
        if SendBeacon(FIND_ME) in actions:
            return due, actions


def test_silent_predecessor_is_closed_with_the_opened_ring() -> None:
    """Check that a silent predecessor is closed with the opened ring (4.6).

    It counts after 5 s (3.5), and would hold the tail forever.
    """
    node = tried()
    node.on_time(5.0)
    assert node.tail.state is TailState.LINKED
    now, actions = lost_from(linked(node))
    assert now < 420.0
    assert SILENT in actions
    assert node.tail.state is TailState.OPEN
    assert BROKEN_ME in waiting(node, now, LOW)


def test_silent_predecessor_is_closed_without_a_successor() -> None:
    """Check that a silent predecessor is closed without a successor (4.6).

    The other nodes' ring is closed; they are called, and can connect to it.
    """
    node = tried()
    node.on_time(5.0)
    assert SILENT in lost_from(node)[1]


def test_recent_predecessor_is_kept() -> None:
    node = started()
    node.accepted(1, 240.0)
    node.on_time(245.0)
    first, actions = lost_from(linked(node, 245.0))
    assert SILENT not in actions
    assert node.tail.state is TailState.LINKED
    second, actions = lost_from(node)
    assert 300.0 <= second - first < 310.0
    assert SILENT in actions


def test_predecessor_that_spoke_is_kept() -> None:
    node = vacant()
    node.heard(1, 200.0)
    assert CloseOutbound("the ring has no leader") in lost_from(node)[1]
    assert node.tail.state is TailState.LINKED


def test_ring_with_a_proposed_leader_is_not_opened() -> None:
    node = vacant()
    hear(node, Leader(HIGH), 10.0)
    for now in range(20, 2000, 10):
        if now % 60 == 0:
            hear(node, Leader(HIGH), float(now))
        node.on_time(float(now))
    assert CloseOutbound("the ring has no leader") not in node.take_actions()


def test_store_away_ends_the_vacancy() -> None:  # 4.7
    node = started()
    node.store_away("the store refuses", 1.0)
    assert node.deadline() is None
