"""Test the rules for contested names and numbers without a cluster (docs/kubernetes.md, "Conflicts")."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from penstock_operator.cluster.resources import Key, Kind, Resource
from penstock_operator.documents.declared import DeclaredQueue, read_queue
from penstock_operator.queues import conflicts as rivals
from penstock_operator.queues.conflicts import Claimants, wants

from services.store.model.rqp_binding import split_claim


def resource(name: str, second: int = 0, **spec: Any) -> Resource:
    created = f"2026-01-01T00:00:{second:02}Z"
    return Resource(Key(Kind.QUEUE, "shop", name), f"uid-{name}", 1, 1, created, "", spec, {}, {})


numbers = st.one_of(st.none(), st.integers(1, 3))
bindings = st.builds(
    lambda mca, cast: {
        "rqpMca": {} if mca is None else {"queueId": mca},
        "rqpCast": {} if cast is None else {"key": cast},
    },
    numbers,
    numbers,
)
peers = st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2)
remotes = st.builds(
    lambda number, there: {"protocol": "rqp-mca", "queueId": number, "peers": there}, st.integers(1, 2), peers
)
specs = st.one_of(
    st.builds(lambda name, found: {"queueName": name, "bindings": found}, st.sampled_from("xyz"), bindings),
    st.builds(lambda name, found: {"queueName": name, "remote": found}, st.sampled_from("xyz"), remotes),
)
declared = st.lists(st.tuples(st.integers(0, 3), specs), min_size=1, max_size=7).map(
    lambda found: [read_queue(resource(f"q{at}", second, **spec)) for at, (second, spec) in enumerate(found)]
)


def settled(queues: list[DeclaredQueue]) -> Claimants:
    claimants = Claimants()
    for each in queues:
        claimants.put(each.resource.key, each)
    return claimants


@given(queues=declared)
def test_affected_queues_are_returned(queues: list[DeclaredQueue]) -> None:
    """Check that queues that lose or gain by another one's end are returned, to be reconciled again."""
    claimants = settled(queues)
    for gone in queues:
        before = {each.resource.key: claimants.lost(each) for each in queues if each is not gone}
        touched = claimants.put(gone.resource.key, None)
        assert touched >= {key for key, lost in before.items() if lost != claimants.lost(found(queues, key))}
        claimants.put(gone.resource.key, gone)


def clash(one: str, other: str) -> bool:
    (what, at), (its, there) = split_claim(one), split_claim(other)
    return what == its and (at == there or "*" in (at, there))


def by_the_page(queues: list[DeclaredQueue], of: DeclaredQueue) -> dict[str, Key]:
    """Apply the documented rule: in order of age, each queue gets its claims if all of them are free."""
    taken: list[tuple[str, Key]] = []
    for each in sorted(queues, key=lambda one: one.resource.age_rank):
        name, *claims = wants(each)
        lost = {want: by for want, by in taken if want == name} or {
            claim: next(by for want, by in taken if clash(claim, want))
            for claim in claims
            if any(clash(claim, want) for want, _ in taken)
        }
        if each is of:
            return lost
        taken += [] if lost else [(want, each.resource.key) for want in wants(each)]
    raise AssertionError("no queue has this key")


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), specs)), max_size=20))
def test_oldest_wins_in_any_order_of_events(steps: list[tuple[int, Any]]) -> None:
    """Check that the oldest queue wins in any order of events; None deletes. Names are in reverse order of age."""
    claimants, there = Claimants(), dict[str, DeclaredQueue]()
    for at, spec in steps:
        one = read_queue(resource(f"q{at}", 5 - at, **(spec or {})))
        there.pop(one.resource.key.name, None)
        claimants.put(one.resource.key, one if spec else None)
        if spec:
            there[one.resource.key.name] = one
        for each in there.values():
            assert claimants.lost(each) == by_the_page([*there.values()], each)
        assert spec or claimants.lost(one) == {}


def found(queues: list[DeclaredQueue], key: Key) -> DeclaredQueue:
    return next(each for each in queues if each.resource.key == key)


def test_name_like_a_target_is_no_conflict() -> None:
    one = read_queue(resource("q1", 0, queueName="x at a"))
    other = read_queue(resource("q2", 1, queueName="x at b"))
    assert settled([one, other]).lost(other) == {}


def test_many_targets_at_different_peers() -> None:
    """Check that the same queue id at different peers is no conflict, as for queue 1 of each branch."""
    claimants = Claimants()
    for each in range(2000):
        one = read_queue(
            resource(f"q{each}", remote={"protocol": "rqp-mca", "queueId": 1, "peers": [f"branch{each}"]})
        )
        assert claimants.put(one.resource.key, one) == set()
        assert claimants.lost(one) == {}


def steps_of(work: Callable[[], object]) -> int:
    """Return the number of Python operations that the module executes, which is independent of the machine."""
    count = 0

    def on_operation(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return on_operation

    def on_call(frame: FrameType, event: str, arg: object) -> Any:
        return on_operation(frame, event, arg) if frame.f_code.co_filename == rivals.__file__ else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def to_many(number: int, peers: int) -> list[DeclaredQueue]:
    """Return queues with many peers each, one of them common to all."""
    return [
        read_queue(
            resource(
                f"q{each}",
                remote={
                    "protocol": "rqp-mca",
                    "queueId": 1,
                    "peers": ["all", *(f"{each}-{at}" for at in range(peers))],
                },
            )
        )
        for each in range(number)
    ]


def test_group_is_resolved_once_in_linear_time() -> None:
    few, many, wide = to_many(5, 50), to_many(20, 50), to_many(5, 200)
    assert settled(many).lost(many[7]) == {"to rqp-mca 1 at all": many[0].resource.key}
    settling_few = steps_of(partial(settled(few).lost, few[-1]))
    claimants = settled(many)
    for one, by in ((claimants, many), (settled(wide), wide)):  # four times as many claims
        assert steps_of(partial(one.lost, by[-1])) < 5 * settling_few
    assert sum(steps_of(partial(claimants.lost, each)) for each in many) < settling_few


def test_adding_a_queue_costs_only_its_own_claims() -> None:
    few, many = to_many(5, 50), to_many(20, 50)
    put_to_few = steps_of(partial(settled(few).put, few[-1].resource.key, few[-1]))
    assert steps_of(partial(settled(many).put, many[-1].resource.key, many[-1])) < 2 * put_to_few
