"""A node's tail: OPENs, accepted predecessors, and their timeouts (ring.md 3.5, 2.6, 4.4)."""

from __future__ import annotations

import pytest

from protos.ring import BreakLinkForced, Find, Leader, LinkBroken, Open, encode_beacon
from protos.ring.actions import CloseInbound, SendBeacon
from protos.ring.node import Break, Node
from protos.ring.tail import TailState
from tests.protos.ring.node_samples import (
    BROKEN_ME,
    GROUP,
    HIGH,
    HIGHER,
    LOW,
    ME,
    SERVICE,
    TIMES,
    followed,
    hear,
    leading,
    linked,
    new,
    opened_by,
    said,
    started,
    to,
    tried,
    waiting,
)

OPEN_ME = SendBeacon(Open(GROUP, ME, ME, SERVICE))


def opens_until(node: Node, end: float) -> list[float]:
    """Return the times at which OPENs are sent."""
    times = []
    while (now := node.tail.deadline()) is not None and now < end:
        node.on_time(now)
        times += [now] * len(to(SendBeacon, node.take_actions()))
    return times


def test_open_is_sent_at_once_then_every_second_then_every_30_s() -> None:  # 3.5
    node = new()
    node.store_back(100.0)
    assert node.take_actions() == [OPEN_ME]
    assert opens_until(node, 200.0) == [*(101.0 + number for number in range(10)), 140.0, 170.0]


def test_open_continues_until_a_predecessor_counts() -> None:  # 3.5
    node = tried()
    assert opens_until(node, 4.5) == [1.0, 2.0, 3.0, 4.0]
    node.heard(1, 4.5)
    assert opens_until(node, 900.0) == []


def test_open_names_the_leader() -> None:  # 3.1, 4.1
    node = followed()
    hear(node, Leader(HIGH))
    node.inbound_lost(1, "closed", 10.0)
    assert node.take_actions() == [SendBeacon(Open(GROUP, HIGH, ME, SERVICE))]


def test_open_omits_a_leader_name_that_does_not_fit() -> None:  # 1.2
    me, leader = b"m" * 230 + b":1", b"x" * 240
    node = Node(me, GROUP, SERVICE, TIMES)
    node.store_back(0.0)
    node.accepted(1, 0.0)
    hear(node, Leader(leader))
    node.inbound_lost(1, "closed", 10.0)
    assert node.election.leader == leader
    beacon = to(SendBeacon, node.take_actions())[-1].beacon
    assert beacon.leader == me
    encode_beacon(beacon)


def test_a_first_message_makes_a_predecessor() -> None:  # 3.5
    node = tried()
    assert node.tail.state is TailState.TRIED
    assert node.heard(1, 0.5)
    assert node.tail.state is TailState.LINKED
    assert waiting(node) == [LinkBroken(ME), Leader(ME)]  # 4.4, then 4.2


def test_silent_connection_counts_after_5_s() -> None:  # 3.5
    node = tried(now=10.0)
    assert node.deadline() == 11.0
    node.on_time(14.9)
    assert node.tail.state is TailState.TRIED
    node.on_time(15.0)
    assert node.tail.state is TailState.LINKED


def test_a_newer_connection_takes_the_place_of_a_silent_one() -> None:  # 3.5
    node = tried()
    node.accepted(2, 3.0)
    assert node.take_actions() == [CloseInbound(1, "a newer connection takes its place")]
    assert not node.heard(1, 3.5)
    node.on_time(5.0)  # the 5 s are the newer one's
    assert node.tail.state is TailState.TRIED
    assert node.heard(2, 5.5)
    assert node.tail.state is TailState.LINKED


def test_later_connections_are_closed() -> None:  # 3.5
    node = followed()
    node.accepted(2, 1.0)
    assert node.take_actions() == [CloseInbound(2, "there is a predecessor")]
    assert not node.heard(2, 1.0)
    node.inbound_lost(2, "closed", 1.0)
    assert node.heard(1, 1.0)
    assert node.tail.state is TailState.LINKED


def test_lost_silent_connection_is_no_break() -> None:  # 3.5: a health probe
    node = tried()
    node.inbound_lost(1, "closed", 0.5)
    assert node.tail.state is TailState.OPEN
    assert node.last_break is None
    assert opens_until(node, 3.5) == [1.0, 2.0, 3.0]
    assert waiting(node) == [LinkBroken(ME)]  # only that of its start


def test_lost_predecessor_is_announced_and_replaced() -> None:  # 4.4, 3.5
    node = leading()
    node.inbound_lost(1, "closed", 50.0)
    assert node.tail.state is TailState.OPEN
    assert node.take_actions() == [OPEN_ME]
    assert said(node) == [BROKEN_ME]
    assert not node.election.is_leader
    assert node.last_break == Break(50.0, "inbound", "closed")
    assert opens_until(node, 53.5) == [51.0, 52.0, 53.0]


def test_link_broken_is_repeated_after_300_s_alone() -> None:  # 3.5
    node = leading()
    node.inbound_lost(1, "closed", 50.0)
    said(node)
    node.on_time(349.9)
    assert BROKEN_ME not in said(node)
    node.on_time(350.0)
    assert BROKEN_ME in said(node)
    node.on_time(650.0)
    assert BROKEN_ME in waiting(node, 650.0, LOW)


# Unanswered OPENs (3.8) ----------------------------------------------------------------------------------------------


def leaders_named_until(node: Node, end: float) -> list[tuple[float, bytes]]:
    """Return the leaders named by the OPENs from 40 s on."""
    named = []
    while (now := node.tail.deadline()) is not None and now < end:
        node.on_time(now)
        opens = [each.beacon for each in to(SendBeacon, node.take_actions()) if isinstance(each.beacon, Open)]
        named += [(now, each.leader) for each in opens if now >= 40.0]
    return named


def test_after_60_s_every_other_open_names_another_leader() -> None:  # 3.8
    node = followed()
    hear(node, Leader(HIGH))
    node.inbound_lost(1, "closed", 0.0)
    named = leaders_named_until(node, 200.0)
    assert named == [(40.0, HIGH), (70.0, ME), (100.0, HIGH), (130.0, ME), (160.0, HIGH), (190.0, ME)]


def test_leader_names_another_node_in_every_other_open() -> None:  # 3.8
    assert leaders_named_until(linked(started()), 101.0) == [(40.0, ME), (70.0, HIGH), (100.0, ME)]
    # it knows no other node
    assert leaders_named_until(started(), 101.0) == [(40.0, ME), (70.0, ME), (100.0, ME)]


def forced_until(node: Node, opens: dict[bytes, list[float]], end: float) -> list[float]:
    """Return when the inbound side is closed for waiting tails. opens: when they announce themselves."""
    heard = sorted((time, name) for name, times in opens.items() for time in times)
    closed = []
    for now in range(int(end)):
        while heard and heard[0][0] <= now:
            node.beacon(opened_by(heard[0][1], ME), heard.pop(0)[0])
        node.on_time(float(now))
        closed += [float(now)] * (CloseInbound(1, "another node waits in vain") in node.take_actions())
    return closed


EVERY_30_S = [float(time) for time in range(10, 600, 30)]


def test_ring_is_opened_for_a_starved_tail() -> None:  # 3.8
    [at] = forced_until(leading(), {HIGHER: EVERY_30_S}, 250.0)
    assert 160.0 <= at <= 190.0


def test_no_second_ring_is_opened_for_a_starved_tail() -> None:  # 3.8
    opens = {HIGHER: EVERY_30_S, HIGH: [140.0]}
    [at] = forced_until(leading(), opens, 350.0)
    assert 290.0 <= at <= 340.0


def test_ring_stays_closed_if_the_tail_was_connected_in_between() -> None:  # 3.8
    times = [time for time in EVERY_30_S if not 70.0 < time < 180.0]
    [at] = forced_until(leading(), {HIGHER: times}, 400.0)
    assert at >= 330.0


def test_ring_is_not_opened_for_the_node_itself() -> None:  # 3.8
    assert forced_until(leading(), {ME: EVERY_30_S}, 400.0) == []
    assert forced_until(started(), {HIGHER: EVERY_30_S}, 200.0) == []


def test_loss_of_a_refused_connection_is_ignored() -> None:
    node = followed()
    node.inbound_lost(9, "closed", 1.0)
    assert node.tail.state is TailState.LINKED


@pytest.mark.parametrize("ttl", [0, 1, 255, 65025])
def test_break_link_forced_closes_the_inbound_side(ttl: int) -> None:  # 2.3
    node = leading()
    hear(node, BreakLinkForced(ttl), 7.0)
    assert node.take_actions() == [CloseInbound(1, "forced by the predecessor"), OPEN_ME]
    assert said(node) == [BROKEN_ME]
    assert node.last_break == Break(7.0, "inbound", "forced by the predecessor")
    node.accepted(2, 8.0)
    assert node.heard(2, 8.0)


# Silence (2.6) -------------------------------------------------------------------------------------------------------


def test_predecessor_silent_for_30_s_is_closed() -> None:  # 2.6
    node = tried()
    hear(node, Leader(LOW, 0), 1.0)
    hear(node, Leader(LOW, 0), 11.0)
    node.take_actions()
    node.on_time(40.9)
    assert not to(CloseInbound, node.take_actions())
    node.on_time(41.0)
    assert to(CloseInbound, node.take_actions()) == [CloseInbound(1, "the predecessor is silent")]
    assert node.tail.state is TailState.OPEN
    assert node.last_break == Break(41.0, "inbound", "the predecessor is silent")


def test_any_message_resets_the_silence() -> None:  # 2.6
    node = tried()
    hear(node, Leader(LOW, 0), 1.0)
    node.heard(1, 20.0)
    assert node.tail.deadline() == 50.0


def test_predecessor_that_never_sends_its_name_may_be_silent() -> None:  # 2.6: an original
    node = followed()
    hear(node, Leader(HIGH))
    for now in range(60, 640, 60):
        node.beacon(Find(GROUP, HIGH), float(now))
        node.on_time(float(now))
    assert node.tail.state is TailState.LINKED


def test_proposal_with_ttl_0_does_not_name_the_predecessor() -> None:  # 2.6, 2.3
    node = followed()
    hear(node, Leader(HIGH, 0), 1.0)
    assert node.tail.name is None
    hear(node, Leader(LOW, 0), 2.0)
    assert node.tail.deadline() == 2.0 + TIMES.hung_s
    hear(node, Leader(LOW, 0), 12.0)
    assert node.tail.name == LOW
    hear(node, Leader(HIGH, 0), 13.0)
    assert node.tail.name == LOW


def test_next_predecessor_starts_unnamed() -> None:  # 2.6
    node = tried()
    hear(node, Leader(LOW, 0))
    node.inbound_lost(1, "closed", 1.0)
    node.accepted(2, 2.0)
    node.heard(2, 2.0)
    assert node.tail.name is None
    assert node.tail.deadline() == 2.0 + TIMES.hung_s
    assert started().tail.name is None


def test_open_node_has_an_announcement() -> None:  # 3.4
    """Check that an open node has an announcement: the contents of an OPEN, without changing other times."""
    assert new().announcement() is None  # the store is not available yet
    node = tried()
    due = node.deadline()
    assert node.announcement() == OPEN_ME.beacon
    assert (node.deadline(), node.take_actions()) == (due, [])
    node.heard(1, 1.0)
    assert node.announcement() is None
    hear(node, Leader(HIGH))
    node.inbound_lost(1, "closed", 10.0)
    assert node.announcement() == Open(GROUP, HIGH, ME, SERVICE)
    node.store_away("refused", 11.0)
    assert node.announcement() is None
