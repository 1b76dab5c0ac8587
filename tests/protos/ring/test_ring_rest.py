"""A ring of relays with random events in any order (ring.md 5.3 to 5.5, 5.7)."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from protos.ring import NO_ID, Frame, Operation, encode_frame
from tests.protos.ring.relays import Member, Ours, Plain, Ring

QUEUES = [b"here", b"there", b"nowhere"]
REQUESTS = [Operation.CREATE_QUEUE, Operation.PUSH, Operation.PULL, Operation.DESTROY_QUEUE]
names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)
nodes = st.tuples(names, st.sets(st.sampled_from(QUEUES[:2])))  # and the queues they serve
places = st.integers(0, 99)


class AnyRing(RuleBasedStateMachine):
    """Requests, replies, settlements and other payloads on a ring of our nodes and a few originals."""

    @initialize(
        members=st.lists(
            st.tuples(names, st.sets(st.sampled_from(QUEUES[:2]))),
            min_size=1,
            max_size=6,
            unique_by=lambda m: m[0],
        ),
        others=st.integers(0, 2),
        max_laps=st.integers(1, 3),
    )
    def begin(self, members: list[tuple[bytes, set[bytes]]], others: int, max_laps: int) -> None:
        ours: list[Member] = [Ours(name, serves, max_laps) for name, serves in members]
        self.ring = Ring(ours)
        for number in range(others):
            self.ring.members.insert(number * 3, Plain(b"%d another's, of more than 20" % number, set()))
        self.requests: list[Frame] = []
        self.died: list[Member] = []
        self.all_went_well = True  # no broken link, no dead node

    # Events

    @rule(place=places, text=st.sampled_from([b"tick", b"tock"]), copies=st.sampled_from([1, 1, 2, 9]))
    def payloads_that_are_no_operations(self, place: int, text: bytes, copies: int) -> None:
        member = self.member(place)
        if isinstance(member, Ours):
            for _ in range(copies):
                member.put_on(member.name + b": " + text)

    @rule(place=places, operation=st.sampled_from(REQUESTS), queue=st.sampled_from(QUEUES))
    def a_request(self, place: int, operation: Operation, queue: bytes) -> None:
        """Put a request on the ring: ours have ids; those of originals have none, and are equal."""
        member = self.member(place)
        request_id = (len(self.requests) + 1).to_bytes(16, "big") if isinstance(member, Ours) else NO_ID
        frame = Frame(operation, member.name, queue, b"", request_id)
        member.put_on(encode_frame(frame))
        self.requests.append(frame)

    @rule(place=places, count=st.integers(1, 30))
    def a_node_sends(self, place: int, count: int) -> None:
        for _ in range(count):
            self.ring.send(place % len(self.ring.members))

    @rule(rounds=st.integers(1, 10))
    def everybody_sends(self, rounds: int) -> None:
        for _ in range(rounds):
            for place in range(len(self.ring.members)):
                self.ring.send(place)

    @rule(place=places)
    def acknowledgements_arrive(self, place: int) -> None:
        self.ring.answer(place % len(self.ring.members))

    @rule(place=places)
    def a_link_breaks(self, place: int) -> None:
        self.all_went_well &= not self.member(place).unanswered
        self.ring.break_link(place % len(self.ring.members))

    @rule(place=places)
    def a_store_refuses(self, place: int) -> None:
        self.all_went_well = False
        self.ring.send(place % len(self.ring.members), store_refuses=True)

    @rule(place=places)
    def a_node_dies(self, place: int) -> None:
        others = [member for member in self.ring.members if member is not self.member(place)]
        if not any(isinstance(member, Ours) for member in others):
            return  # no node would end any of them
        self.all_went_well = False
        self.died.append(self.ring.kill(place % len(self.ring.members)))

    def member(self, place: int) -> Member:
        return self.ring.members[place % len(self.ring.members)]

    # Invariants

    def teardown(self) -> None:
        if not hasattr(self, "ring"):
            return
        self.ring.settle_down(max_steps=2_000)
        ours = [member for member in self.ring.members if isinstance(member, Ours)]
        self.check_payloads(ours)
        for frame in self.requests:
            self.check_request(frame, ours)
        for member in ours:
            fresh = [frame.request_id for frame in member.carried_out if frame.request_id != NO_ID]
            assert len(set(fresh)) == len(fresh)
        if self.all_went_well:
            self.check_all_once(ours)

    def check_payloads(self, ours: list[Ours]) -> None:
        """Check that each payload reached every other live node as often as it was sent."""
        for origin in [*ours, *self.died]:
            for payload, copies in origin.began.items():
                if payload.startswith(origin.name):
                    for member in ours:
                        assert member is origin or member.inbox[payload] >= copies

    def check_request(self, frame: Frame, ours: list[Ours]) -> None:
        """Check that the requesting node learns the outcome."""
        for member in ours:
            if member.name == frame.sender:
                heard = member.answers + member.came_back
                assert frame.request_id in {each.request_id for each in heard}

    def check_all_once(self, ours: list[Ours]) -> None:
        for frame in self.requests:
            sent = self.requests.count(frame)
            server = self.ring.first_server(frame.sender, frame.queue)
            for member in ours:
                assert member.carried_out.count(frame) == (sent if member is server else 0)
            replies = sum(_answers(frame, each) for member in self.ring.members for each in member.answers)
            assert replies >= (sent if server else 0)
        for member in ours:
            for origin in ours:
                for payload, copies in origin.began.items():
                    if payload.startswith(origin.name):
                        assert member.inbox[payload] == (copies if member is not origin else 0)
            assert len(member.came_back) == sum(
                frame.sender == member.name and self.ring.first_server(frame.sender, frame.queue) is None
                for frame in self.requests
            )
            assert set(member.settled) == member.leases  # each pull's message was reported once
            assert len(member.settled) == len(member.leases)
            assert not member.repeats


def _answers(request: Frame, reply: Frame) -> bool:
    ids = (reply.sender, reply.queue, reply.request_id)
    return reply.operation is Operation.OK and ids == (request.sender, request.queue, request.request_id)


class TestAnyRing(AnyRing.TestCase):
    settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("seed", range(3))
def test_heartbeat_reaches_all_nodes_each_time(seed: int):  # ring.md 5.7
    """Check that a heartbeat reaches all nodes each time.

    It is always the same, and one is always on the ring, also between the two questions about it.
    """
    chance = random.Random(seed)
    ring = Ring([Ours(b"%d" % number, set(), max_laps=2) for number in range(4)])
    for _ in range(300):
        ring.members[0].put_on(b"alive")
        for _ in range(8):
            place = chance.randrange(4)
            ring.send(place)
            ring.answer(place)
    ring.settle_down(max_steps=20_000)
    assert [member.inbox[b"alive"] for member in ring.members] == [0, 300, 300, 300], f"seed {seed}"


@pytest.mark.parametrize("copies", [1, 2, 50])
def test_message_of_a_dead_node_leaves_the_ring(copies: int):  # ring.md 5.5, 5.7
    ring = Ring([Ours(b"%d" % number, set(), max_laps=3) for number in range(5)])
    for _ in range(copies):
        ring.members[2].put_on(b"last words")
    ring.kill(2)
    ring.settle_down(max_steps=1_000)
    for member in ring.members:
        assert isinstance(member, Ours)
        assert copies <= member.inbox[b"last words"] <= 8 * copies


def test_a_request_without_an_id_whose_sender_is_dead_leaves_the_ring():  # ring.md 5.5, 5.7
    ring = Ring(
        [*(Ours(b"%d" % number, set(), max_laps=3) for number in range(3)), Plain(b"another's", set())]
    )
    for _ in range(20):
        ring.members[3].put_on(encode_frame(Frame(Operation.PUSH, b"another's", b"nowhere")))
    ring.kill(3)
    ring.settle_down(max_steps=1_000)


def test_a_request_that_was_passed_on_is_not_carried_out_if_it_comes_again():  # ring.md 5.5
    """Check that a forwarded request is not carried out if it comes again.

    Its queue was created here in between, and the node behind may have carried it out.
    """
    asks, passes, serves = members = [Ours(name, set(), 3) for name in (b"asks", b"passes", b"serves")]
    ring = Ring([*members])
    serves.serves.add(b"here")
    asks.put_on(encode_frame(Frame(Operation.PUSH, b"asks", b"here", b"", b"\1" * 16)))
    ring.send(0)
    passes.serves.add(b"here")
    ring.break_link(0)
    ring.settle_down(max_steps=100)
    assert (passes.carried_out, len(serves.carried_out), len(asks.answers)) == ([], 1, 1)
