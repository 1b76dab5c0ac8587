"""A node's head: the nodes that it connects to, when, and its messages there (ring.md 3.6, 2.2, 2.6)."""

from __future__ import annotations

import pytest

from protos.ring import BreakLinkForced, Find, Leader, LinkBroken, Loop
from protos.ring.actions import Dial
from protos.ring.head import HeadState
from protos.ring.node import Break, Node
from tests.protos.ring.node_samples import (
    BROKEN_ME,
    BROKEN_OTHER,
    GROUP,
    HIGH,
    HIGHER,
    LOW,
    ME,
    SAYS_IT_IS_THERE,
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
)


def dials(node: Node, opened: bytes, leader: bytes, now: float) -> list[bytes]:
    node.beacon(opened_by(opened, leader), now)
    return [action.node for action in node.take_actions() if isinstance(action, Dial)]


def test_head_connects_to_another_ring_at_once() -> None:  # 3.6 a
    node = started()
    node.beacon(opened_by(HIGH, HIGH), 0.0)
    assert node.take_actions() == [Dial(HIGH, b"9001")]
    assert node.head.state is HeadState.CONNECTING
    assert node.head.successor == HIGH


@pytest.mark.parametrize("later", [60.0, 119.0, 121.0, 100_000.0])
def test_head_connects_within_its_ring_after_60_s(later: float) -> None:  # 3.6 b
    node = started(1000.0)
    assert dials(node, HIGH, ME, 1059.9) == []
    assert dials(node, HIGH, ME, 1000.0 + later) == [HIGH]


def test_head_connects_to_its_own_node_after_120_s() -> None:  # 3.6 c
    node = started()
    assert dials(node, ME, ME, 60.0) == []
    assert dials(node, ME, HIGH, 119.9) == []  # even if the leader has changed since it was sent
    assert dials(node, ME, ME, 120.0) == [ME]


def test_the_leader_decides_which_ring_an_open_belongs_to() -> None:  # 3.6, 4.1
    node = followed()
    hear(node, Leader(HIGH), 0.0)
    assert dials(node, LOW, HIGH, 1.0) == []
    assert dials(node, LOW, ME, 1.0) == [LOW]


def test_linked_head_ignores_opens() -> None:  # 1
    for node in (new(), dialling(started()), proving(started()), linked(started())):
        assert dials(node, HIGHER, HIGHER, 1000.0) == []


def test_failed_connect_keeps_the_waiting_time() -> None:  # 3.6
    node = dialling(started(), 10.0)
    node.connect_failed(40.0)
    assert node.head.state is HeadState.LISTENING
    assert node.head.waiting_since == 0.0
    proving(node, 70.0).outbound_lost("no A", 75.0)
    assert node.head.waiting_since == 0.0
    assert node.last_break is None
    assert dials(node, LOW, ME, 75.0) == [LOW]


def test_failed_nodes_are_ignored_for_30_s() -> None:  # 3.6
    node = dialling(started(), 0.0)
    node.connect_failed(10.0)
    assert dials(node, HIGH, HIGH, 39.9) == []
    assert dials(node, HIGH, HIGH, 40.0) == [HIGH]
    node.connect_failed(50.0)
    assert dials(node, HIGHER, HIGHER, 50.0) == [HIGHER]


def test_lost_link_restarts_the_waiting_time() -> None:  # 3.6
    node = linked(started(), 10.0)
    assert node.head.waiting_since is None
    node.outbound_lost("closed", 500.0)
    assert node.head.state is HeadState.LISTENING
    assert node.head.waiting_since == 500.0
    assert node.last_break == Break(500.0, "outbound", "closed")
    assert dials(node, HIGH, ME, 559.0) == []
    assert dials(node, HIGH, ME, 560.0) == [HIGH]  # it is not passed over


# Messages to the successor -------------------------------------------------------------------------------------------


def test_new_link_begins_with_leader_ttl_0() -> None:  # 3.5, 2.6
    node = proving(started())
    assert node.next_loop() == SAYS_IT_IS_THERE
    assert node.next_loop() == BROKEN_ME
    assert node.next_loop() is None
    assert node.head.state is HeadState.PROVING
    node.acknowledged(0.0)
    assert node.head.state is HeadState.LINKED


def test_idle_link_sends_leader_ttl_0_after_10_s() -> None:  # 2.6
    node = linked(started(), 0.0)
    node.sent(3.0)
    assert node.head.deadline() == 13.0
    node.on_time(12.9)
    assert said(node) == []
    node.on_time(13.0)
    assert said(node) == [SAYS_IT_IS_THERE]
    assert node.head.deadline() == 23.0


def test_leader_ttl_0_is_not_resent() -> None:  # 2.6
    node = linked(started(), 0.0)
    node.on_time(10.0)
    node.outbound_lost("closed", 10.0)
    linked_again = proving(node, 11.0)
    assert said(linked_again) == [SAYS_IT_IS_THERE]


def test_no_loop_without_a_connection() -> None:  # 2.2: LOOPs wait
    node = started()
    assert node.next_loop() is None
    assert said(proving(node)) == [SAYS_IT_IS_THERE, BROKEN_ME]


def test_duplicate_loop_keeps_the_larger_ttl_and_goes_last() -> None:  # 2.2
    node = followed()
    hear(node, LinkBroken(HIGH, 9))
    hear(node, Leader(HIGHER, 30))
    hear(node, LinkBroken(HIGH, 4))
    assert said(proving(node)) == [
        SAYS_IT_IS_THERE,
        LinkBroken(ME),
        Leader(ME),
        Leader(HIGHER, 29),
        LinkBroken(HIGH, 8),
    ]


def test_at_most_256_loops_wait() -> None:  # 2.2
    node = followed()
    for number in range(300):
        hear(node, LinkBroken(b"n%03d:1" % number))
    assert said(proving(node))[1:] == [LinkBroken(b"n%03d:1" % number, 254) for number in range(44, 300)]


def test_unanswered_loops_come_first_on_the_next_link() -> None:  # 2.2
    node = in_ring()
    hear(node, LinkBroken(LOW, 5))
    hear(node, LinkBroken(HIGH, 5))
    hear(node, LinkBroken(HIGHER, 5))
    unanswered = [node.next_loop(), node.next_loop()]
    node.outbound_lost("closed", 1.0)
    hear(node, LinkBroken(HIGH, 7), 1.0)  # sent again
    give_back(node, [SAYS_IT_IS_THERE, *unanswered, BreakLinkForced()])
    assert said(proving(node, 2.0)) == [
        SAYS_IT_IS_THERE,
        LinkBroken(LOW, 4),
        LinkBroken(HIGHER, 4),
        LinkBroken(HIGH, 6),
    ]


def give_back(node: Node, loops: list[Loop | None]) -> None:
    for loop in reversed(loops):
        assert loop is not None
        node.give_back(loop)


@pytest.mark.parametrize(("ttl", "passed"), [(65025, 254), (256, 254), (255, 254), (254, 253), (2, 1)])
def test_forwarded_loop_has_one_ttl_less_and_at_most_254(ttl: int, passed: int) -> None:  # 2.3
    node = in_ring()
    hear(node, LinkBroken(HIGH, ttl))
    hear(node, Leader(HIGH, ttl))
    assert said(node) == [LinkBroken(HIGH, passed), Leader(HIGH, passed)]


@pytest.mark.parametrize("ttl", [0, 1])
def test_loop_with_ttl_1_is_not_forwarded(ttl: int) -> None:  # 2.3
    node = leading()
    hear(node, BROKEN_OTHER if ttl else LinkBroken(HIGH, 0))
    assert node.election.is_leader is (ttl == 0)
    node = in_ring()
    hear(node, LinkBroken(HIGH, ttl))
    hear(node, Leader(HIGH, ttl))
    assert said(node) == ([Leader(ME)] if ttl else [])  # its TTL is used up, and it is not here (4.6)
    assert node.election.leader == ME


# Nodes that were left (4.3) ------------------------------------------------------------------------------------------


def test_former_successor_counts_as_own_ring() -> None:  # 3.6, 4.3
    node = leading()
    node.beacon(Find(GROUP, HIGHER), 10.0)
    assert dials(node, HIGH, LOW, 10.1) == []
    assert dials(node, LOW, LOW, 10.2) == [LOW]


def test_former_successor_is_forgotten_with_a_new_one() -> None:  # 4.3
    node = leading()
    node.beacon(Find(GROUP, HIGHER), 10.0)
    assert dials(node, HIGH, LOW, 70.0) == [HIGH]  # as one of its own ring
    node.connected(70.0)
    node.acknowledged(70.0)
    node.outbound_lost("closed", 80.0)
    assert dials(node, HIGH, LOW, 80.0) == [HIGH]
