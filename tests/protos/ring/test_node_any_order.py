"""Random events: in any order a node keeps to its tables, and its actions can be carried out."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protos.ring import (
    BreakLinkForced,
    CloseInbound,
    CloseOutbound,
    Dial,
    Find,
    HeadState,
    Leader,
    LinkBroken,
    Loop,
    Node,
    Open,
    SendBeacon,
    TailState,
    Times,
    encode_beacon,
    encode_message,
)
from tests.protos.ring.node_samples import HIGH, HIGHER, LOW, ME, SERVICE

GROUP = 1
names = st.sampled_from([LOW, ME, HIGH, HIGHER])
ttls = st.sampled_from([0, 1, 2, 255, 65025])
loops = st.builds(Leader, names, ttls) | st.builds(LinkBroken, names, ttls) | st.builds(BreakLinkForced, ttls)
groups = st.sampled_from([GROUP, GROUP, GROUP, 2])
beacons = st.builds(Open, groups, names, names, st.just(SERVICE)) | st.builds(Find, groups, names)
gaps = st.sampled_from([0.0, 0.01, 1.0, 5.0, 30.0, 61.0, 130.0, 700.0]) | st.floats(0, 1000)


class Shell(RuleBasedStateMachine):
    """The owner of the sockets: it reports only events that it can have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.node = Node(ME, GROUP, SERVICE, Times())
        self.outbound = ""  # "", "dialling" or "connected"
        self.inbound: set[int] = set()
        self.links = 0
        self.unanswered: list[Loop] = []

    # the clock and the store

    @rule(gap=gaps)
    def time_passes(self, gap: float) -> None:
        end = self.now + gap
        while (due := self.node.deadline()) is not None and due <= end:
            assert due > self.now or gap == 0.0 or due == self.now
            self.now = max(self.now, due)
            self.node.on_time(self.now)
            after = self.node.deadline()
            assert after is None or after > self.now, "it would be called again forever"
            self.obey()
        self.now = end

    @rule()
    def store_is_back(self) -> None:
        self.node.store_back(self.now)
        self.obey()

    @rule()
    def store_refuses(self) -> None:
        self.node.store_away("the store refuses", self.now)
        self.obey()
        assert self.outbound == ""

    # --- beacons

    @rule(beacon=beacons)
    def a_beacon_is_heard(self, beacon: Open | Find) -> None:
        self.node.beacon(beacon, self.now)
        self.obey()

    # --- the outbound side

    @precondition(lambda self: self.outbound == "dialling")
    @rule(succeeds=st.booleans())
    def the_dial_ends(self, succeeds: bool) -> None:
        if succeeds:
            self.outbound = "connected"
            self.node.connected(self.now)
        else:
            self.outbound = ""
            self.node.connect_failed(self.now)
        self.obey()

    @precondition(lambda self: self.outbound == "connected")
    @rule(at_most=st.integers(1, 5))
    def loops_are_sent(self, at_most: int) -> None:
        for _ in range(at_most):
            if (loop := self.node.next_loop()) is not None:
                encode_message(loop)
                self.unanswered.append(loop)
                self.node.sent(self.now)

    @precondition(lambda self: self.unanswered)
    @rule()
    def the_successor_answers(self) -> None:
        self.unanswered.pop(0)
        self.node.acknowledged(self.now)
        self.obey()

    @precondition(lambda self: self.outbound == "connected")
    @rule()
    def the_outbound_side_breaks(self) -> None:
        self.outbound = ""
        self.node.outbound_lost("closed", self.now)
        self.give_back()
        self.obey()

    # --- the inbound side

    @rule()
    def node_connects(self) -> None:
        self.links += 1
        self.inbound.add(self.links)
        self.node.accepted(self.links, self.now)
        self.obey()

    @precondition(lambda self: self.inbound)
    @rule(data=st.data(), loop=loops, is_user=st.booleans())
    def message_arrives(self, data: Any, loop: Loop, is_user: bool) -> None:
        link = data.draw(st.sampled_from(sorted(self.inbound)))
        counts = self.node.heard(link, self.now)
        assert counts is (link == self.node.tail.link)
        if counts and not is_user:
            self.node.received(loop, self.now)
        self.obey()

    @precondition(lambda self: self.inbound)
    @rule(data=st.data())
    def an_inbound_side_breaks(self, data: Any) -> None:
        link = data.draw(st.sampled_from(sorted(self.inbound)))
        self.inbound.remove(link)
        self.node.inbound_lost(link, "closed", self.now)
        self.obey()

    # --- actions

    def obey(self) -> None:
        for action in self.node.take_actions():
            match action:
                case SendBeacon(beacon):
                    encode_beacon(beacon)
                case Dial(_, service):
                    assert self.outbound == ""
                    assert service == SERVICE
                    self.outbound = "dialling"
                case CloseOutbound():
                    assert self.outbound
                    self.outbound = ""
                    self.give_back()
                case CloseInbound(link):
                    self.inbound.remove(link)

    def give_back(self) -> None:
        for loop in reversed(self.unanswered):
            self.node.give_back(loop)
        self.unanswered = []

    # --- invariants

    @invariant()
    def it_knows_its_links(self) -> None:
        head, tail = self.node.head, self.node.tail
        assert head.is_connected is (self.outbound == "connected")
        assert (head.state is HeadState.CONNECTING) is (self.outbound == "dialling")
        assert (head.successor is not None) is bool(self.outbound)
        assert self.inbound == ({tail.link} if tail.link is not None else set())
        assert (tail.link is not None) is (tail.state in (TailState.TRIED, TailState.LINKED))

    @invariant()
    def it_waits_or_has_what_it_wants(self) -> None:
        head = self.node.head
        waits = head.state not in (HeadState.AWAY, HeadState.LINKED)
        assert (head.waiting_since is not None) is waits
        if self.node.is_away:
            assert head.state is HeadState.AWAY
            assert self.node.deadline() is None
        else:
            assert self.node.deadline() is not None  # 4.6 at least, or FIND

    @invariant()
    def its_leader_is_no_lesser_one(self) -> None:
        election = self.node.election
        assert election.leader >= ME  # 4.1
        assert not election.is_leader or election.leader == ME
        assert ME not in self.node.members


TestAnyOrder = Shell.TestCase
TestAnyOrder.settings = settings(max_examples=50, stateful_step_count=60, deadline=None)
