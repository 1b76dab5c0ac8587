"""The leader, link breaks, rings that merge, a store that refuses (ring.md 4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protos.ring import BreakLinkForced, Find, Leader, LinkBroken, Open
from protos.ring.actions import CloseInbound, CloseOutbound, Dial, SendBeacon
from protos.ring.head import HeadState
from protos.ring.node import MAX_MEMBERS, Break, Node
from protos.ring.tail import TailState
from tests.protos.ring.node_samples import (
    BROKEN_ME,
    FIND_ME,
    FIND_OTHER,
    GROUP,
    HIGH,
    HIGHER,
    LOW,
    ME,
    SERVICE,
    TIMES,
    dialling,
    followed,
    hear,
    in_ring,
    leading,
    linked,
    new,
    opened_by,
    proving,
    said,
    started,
    to,
    tried,
    waiting,
)


def finds_until(node: Node, end: float) -> list[float]:
    times = []
    while (now := node.election.deadline()) is not None and now < end:
        node.on_time(now)
        times += [now] * node.take_actions().count(SendBeacon(FIND_ME))
    return times


# Proposals (4.1, 4.2) ------------------------------------------------------------------------------------------------


def test_node_starts_as_its_own_leader_without_leading() -> None:  # 4.1
    node = new()
    assert node.election.leader == ME
    assert not node.election.is_leader


def test_new_predecessor_triggers_a_proposal() -> None:  # 4.2
    node = linked(tried())
    node.heard(1, 1.0)
    assert said(node) == [Leader(ME)]


def test_own_proposal_that_returns_elects_the_node() -> None:  # 4.2, 4.3
    node = in_ring()
    hear(node, Leader(ME, 251), 1.0)
    assert node.election.is_leader
    assert node.take_actions() == [SendBeacon(FIND_ME)]
    assert said(node) == []


def test_greater_proposal_is_accepted_and_forwarded() -> None:  # 4.2
    node = leading()
    hear(node, Leader(HIGH, 100))
    assert node.election.leader == HIGH
    assert not node.election.is_leader
    assert said(node) == [Leader(HIGH, 99)]
    assert node.take_actions() == []


@pytest.mark.parametrize("make", [in_ring, leading])
def test_lesser_proposal_is_replaced_by_the_own(make: Callable[[], Node]) -> None:  # 4.2
    node = make()
    hear(node, Leader(LOW, 100))
    assert node.election.leader == ME
    assert said(node) == [Leader(ME)]


@pytest.mark.parametrize(
    ("lesser", "greater"), [(b"a:1", b"b:1"), (b"m:1", b"m:10"), (b"Z:1", b"a:1"), (b"m:9", b"m:\xff")]
)
def test_names_are_compared_octet_by_octet(lesser: bytes, greater: bytes) -> None:  # 1.2, 4.2
    node = Node(lesser, GROUP, SERVICE, TIMES)
    node.store_back(0.0)
    node.accepted(1, 0.0)
    hear(node, Leader(greater))
    assert node.election.leader == greater


def test_new_leader_may_be_less_than_the_last_but_not_than_the_node() -> None:  # 4.1
    node = in_ring()
    for name, leader in ((HIGHER, HIGHER), (HIGH, HIGH), (LOW, HIGH), (ME, ME)):
        hear(node, Leader(name))
        assert node.election.leader == leader


def test_a_leader_proposes_itself_again_every_300_s() -> None:  # 4.2
    node = leading(now=10.0)
    hear(node, Leader(ME), 100.0)  # its return changes no time
    node.on_time(309.9)
    assert Leader(ME) not in said(node)
    for now in (310.0, 610.0):
        node.on_time(now)
        assert Leader(ME) in said(node)
    hear(node, Leader(HIGH), 700.0)
    said(node)
    node.on_time(910.0)
    assert Leader(ME) not in said(node)


# FIND (4.3) ----------------------------------------------------------------------------------------------------------


def test_a_leader_sends_find_every_60_s() -> None:  # 4.3
    node = leading(now=5.0)
    assert finds_until(node, 250.0) == [65.0, 125.0, 185.0, 245.0]
    hear(node, Leader(HIGH), 250.0)
    assert finds_until(node, 600.0) == []


def test_leader_that_hears_another_opens_its_ring_and_steps_down() -> None:  # 4.3
    node = leading()
    assert node.beacon(FIND_OTHER, 20.0)
    assert node.take_actions() == [SendBeacon(FIND_ME), CloseOutbound("another ring was found")]
    assert not node.election.is_leader
    assert node.election.leader == ME
    assert node.head.state is HeadState.LISTENING
    assert node.head.waiting_since == 20.0
    assert node.tail.state is TailState.LINKED
    assert node.last_break == Break(20.0, "outbound", "another ring was found")
    assert node.beacon(FIND_OTHER, 20.1)  # and does so once
    assert node.take_actions() == []


@pytest.mark.parametrize("make", [started, in_ring])
def test_followers_ignore_find(make: Callable[[], Node]) -> None:  # 4.3
    node = make()
    node.take_actions()
    assert node.beacon(FIND_OTHER, 20.0)
    assert node.take_actions() == []
    assert node.members[HIGH] == 20.0


def test_own_find_is_ignored() -> None:  # 4.3
    node = leading()
    assert not node.beacon(FIND_ME, 20.0)
    assert node.take_actions() == []
    assert node.election.is_leader


def test_leader_without_successor_opens_nothing() -> None:  # 4.3
    node = followed()
    hear(node, Leader(ME))
    dialling(node)
    node.beacon(FIND_OTHER, 1.0)
    assert CloseOutbound("another ring was found") in node.take_actions()
    node.accepted(2, 1.0)
    hear(node, Leader(ME), 2.0)
    node.take_actions()
    node.beacon(FIND_OTHER, 3.0)
    assert node.take_actions() == [SendBeacon(FIND_ME)]


def test_beacons_of_other_groups_are_ignored_by_the_node() -> None:  # 3.3
    node = leading()
    assert not node.beacon(Find(GROUP + 1, HIGH), 20.0)
    assert not node.beacon(opened_by(HIGH, HIGH, GROUP + 1), 20.0)
    assert node.take_actions() == []
    assert HIGH not in {name for name, seen in node.members.items() if seen == 20.0}


# Breaks (4.4) --------------------------------------------------------------------------------------------------------


def test_link_broken_deposes_and_is_forwarded() -> None:  # 4.4
    node = leading()
    hear(node, LinkBroken(HIGH, 100))
    assert not node.election.is_leader
    assert node.election.leader == ME  # 4.1
    assert said(node) == [LinkBroken(HIGH, 99)]


def test_own_link_broken_is_not_forwarded() -> None:  # 4.4
    node = leading()
    hear(node, LinkBroken(ME))
    assert node.election.is_leader
    assert said(node) == []


def test_loss_of_the_successor_sends_no_link_broken() -> None:  # 4.4
    node = leading()
    node.outbound_lost("closed", 1.0)
    assert node.election.is_leader
    assert waiting(node, 100.0) == []


# Rings without a leader (4.6) ----------------------------------------------------------------------------------------


def test_node_without_proposals_for_650_s_proposes_itself() -> None:  # 4.6
    node = in_ring()
    hear(node, Leader(HIGH), 50.0)
    node.beacon(FIND_OTHER, 50.0)
    said(node)
    assert node.election.deadline() == 700.0
    node.on_time(699.9)
    assert node.election.leader == HIGH
    node.on_time(700.0)
    assert node.election.leader == ME
    assert not node.election.is_leader
    assert Leader(ME) in said(node)


def test_dropped_proposals_do_not_reset_the_650_s() -> None:  # 4.6
    node = in_ring()
    hear(node, Leader(HIGH), 50.0)
    node.beacon(FIND_OTHER, 50.0)
    hear(node, Leader(LOW), 600.0)
    hear(node, Leader(HIGH, 0), 600.0)
    assert node.election.deadline() == 700.0


def test_leader_counts_while_it_is_heard() -> None:  # 4.6
    node = in_ring()
    assert not node.is_led(0.0)
    hear(node, Leader(HIGH, 200), 50.0)
    hear(node, Leader(HIGH, 60), 100.0)  # another one's proposal
    hear(node, Leader(HIGH, 0), 100.0)  # the node that is not to lead is alive
    assert node.is_led(179.9)
    assert not node.is_led(180.0)
    node.beacon(FIND_OTHER, 200.0)
    for number in range(MAX_MEMBERS + 1):
        node.beacon(opened_by(b"a:%d" % number, b"a:1"), 201.0)
    assert HIGH not in node.members
    assert node.is_led(329.9)
    assert not node.is_led(330.0)


def test_find_of_one_leader_does_not_confirm_the_next() -> None:  # 4.6
    node = in_ring()
    hear(node, Leader(HIGH, 200), 50.0)
    hear(node, Leader(HIGHER, 60), 60.0)
    assert node.election.leader == HIGHER
    assert not node.is_led(60.0)


def test_open_ring_has_no_leader() -> None:  # 4.1, 4.4
    node = leading()
    assert node.is_led(10_000.0)
    hear(node, LinkBroken(HIGH, 100), 10_000.0)
    assert not node.is_led(10_000.0)
    hear(node, Leader(HIGH, 200), 10_001.0)
    assert node.is_led(10_001.0)
    node.outbound_lost("closed", 10_002.0)
    assert not node.is_led(10_002.0)
    node.store_away("the store refuses", 10_003.0)
    assert not node.is_led(10_003.0)


# The store (4.7) -----------------------------------------------------------------------------------------------------


def test_node_starts_away_and_opens_with_the_store() -> None:  # 4.7
    node = new()
    assert node.is_away
    assert node.deadline() is None
    node.on_time(1000.0)
    node.accepted(1, 1000.0)
    assert node.take_actions() == [CloseInbound(1, "away")]
    node.store_back(1000.0)
    node.store_back(1001.0)  # it is closed already
    assert node.take_actions() == [SendBeacon(Open(GROUP, ME, ME, SERVICE))]
    assert node.head.waiting_since == 1000.0
    assert waiting(node, 1001.0) == [BROKEN_ME]


def test_store_away_closes_both_links() -> None:  # 4.7
    node = leading()
    node.store_away("the store refuses", 30.0)
    node.store_away("again", 31.0)
    assert node.take_actions() == [
        CloseOutbound("the store refuses"),
        CloseInbound(1, "the store refuses"),
    ]
    assert node.last_break == Break(30.0, "both", "the store refuses")
    assert not node.election.is_leader
    assert node.deadline() is None
    assert node.beacon(opened_by(HIGH, HIGH), 40.0)
    assert node.beacon(FIND_OTHER, 40.0)
    assert not node.heard(1, 40.0)
    assert node.take_actions() == []


@pytest.mark.parametrize("make", [started, tried, lambda: dialling(started()), lambda: proving(started())])
def test_store_away_works_in_every_state(make: Callable[[], Node]) -> None:  # 4.7
    node = make()
    connects = node.head.successor is not None
    is_tried = node.tail.link is not None
    node.store_away("the store refuses", 1.0)
    actions = node.take_actions()
    assert len(to(CloseOutbound, actions)) == connects
    assert len(to(CloseInbound, actions)) == is_tried
    node.store_back(500.0)
    node.beacon(opened_by(HIGH, ME), 559.0)
    assert not to(Dial, node.take_actions())
    node.beacon(opened_by(HIGH, ME), 560.0)
    assert to(Dial, node.take_actions())


# Knowledge of other nodes --------------------------------------------------------------------------------------------


def test_members_have_the_time_they_were_heard_of() -> None:
    node = in_ring()
    node.members.clear()
    node.beacon(opened_by(LOW, HIGHER), 1.0)
    hear(node, Leader(HIGH), 2.0)
    hear(node, LinkBroken(b"n:1"), 3.0)
    hear(node, Leader(b"p:1", 0), 4.0)
    hear(node, Leader(ME), 5.0)
    node.acknowledged(6.0)
    node.beacon(Find(GROUP, b"q:1"), 6.0)
    assert node.members == {LOW: 1.0, b"q:1": 6.0, b"n:1": 3.0, b"p:1": 4.0, HIGH: 6.0}
    hear(node, BreakLinkForced(), 7.0)
    assert len(node.members) == 5


def test_members_unheard_for_longest_are_evicted() -> None:
    node = in_ring()
    node.members.clear()
    for number in range(MAX_MEMBERS + 10):
        hear(node, LinkBroken(b"n%04d:1" % number), float(number))
        hear(node, LinkBroken(b"n0000:1"), float(number))
    assert len(node.members) == MAX_MEMBERS
    assert b"n0000:1" in node.members
    assert b"n0001:1" not in node.members
