"""A ring in which proposals of leaders do not come around (ring.md 4.6)."""

from __future__ import annotations

from protos.ring import Leader
from protos.ring.node import Break, Node
from protos.ring.tail import TailState
from tests.protos.ring.node_samples import FIND_OTHER, LOW, ME, hear, in_ring, leading, said


def test_leader_without_returned_proposals_closes_a_silent_predecessor() -> None:
    node = leading(100.0)
    run_until(node, 999.0)
    assert node.election.is_leader
    run_until(node, 1001.0)
    assert not node.election.is_leader
    assert node.tail.state is TailState.OPEN
    assert node.last_break == Break(1000.0, "inbound", "the predecessor is silent: no proposal comes around")


def test_leader_without_returned_proposals_steps_down() -> None:
    node = leading(100.0)
    for now in range(110, 1010, 10):
        run_until(node, now)
        hear(node, Leader(LOW, 0), now)
    assert not node.election.is_leader
    assert node.tail.state is TailState.LINKED


def test_leader_with_returned_proposals_stays() -> None:
    node = leading(100.0)
    for now in range(400, 4000, 300):
        run_until(node, now)
        hear(node, Leader(ME), now)
    assert node.election.is_leader
    assert node.tail.state is TailState.LINKED


def test_follower_without_proposals_closes_its_predecessor() -> None:
    """Check that a follower without proposals closes its predecessor, though its leader's beacons are heard.

    An original that hangs is somewhere before it.
    """
    node = in_ring(0.0)
    for now in range(10, 900, 10):
        run_until(node, now)
        node.beacon(FIND_OTHER, now)
    assert node.tail.state is TailState.LINKED
    run_until(node, 901.0)
    assert node.tail.state is TailState.OPEN


def run_until(node: Node, end: float) -> None:
    """Let time pass without carrying out any action."""
    while (due := node.deadline()) is not None and due <= end:
        node.on_time(due)
        node.sent(due)
        node.take_actions()
        said(node)
