"""Who has a name or number that several want (docs/kubernetes.md, "Conflicts"): rules, without a cluster."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from penstock_operator.declared import DeclaredQueue, read_queue
from penstock_operator.resources import Key, Kind, Resource
from penstock_operator.rivals import Claimants, wants

from services.store.rqp_binding import split_claim


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


def clash(one: str, other: str) -> bool:
    (what, at), (its, there) = split_claim(one), split_claim(other)
    return what == its and (at == there or "*" in (at, there))


def settled(queues: list[DeclaredQueue]) -> Claimants:
    claimants = Claimants()
    for each in queues:
        claimants.put(each.resource.key, each)
    return claimants


@given(queues=declared, order=st.randoms(use_true_random=False))
def test_winners_share_nothing_and_losers_lost_to_older_winners(
    queues: list[DeclaredQueue], order: Any
) -> None:
    """In whatever order they were seen."""
    order.shuffle(queues)
    claimants = settled(queues)
    winners = {each.resource.key: each for each in queues if not claimants.lost(each)}
    for one in winners.values():
        for other in winners.values():
            if one is not other:
                assert one.name != other.name
                assert not any(clash(mine, its) for mine in one.claims for its in other.claims)
    for each in queues:
        for want, by in claimants.lost(each).items():
            assert want in wants(each)
            assert winners[by].resource.age_rank < each.resource.age_rank


@given(queues=declared)
def test_whose_case_may_change_is_told(queues: list[DeclaredQueue]) -> None:
    """Whoever loses or wins by another one's end is among those that are looked at again."""
    claimants = settled(queues)
    for gone in queues:
        before = {each.resource.key: claimants.lost(each) for each in queues if each is not gone}
        touched = claimants.put(gone.resource.key, None)
        assert touched >= {key for key, lost in before.items() if lost != claimants.lost(found(queues, key))}
        claimants.put(gone.resource.key, gone)


def found(queues: list[DeclaredQueue], key: Key) -> DeclaredQueue:
    return next(each for each in queues if each.resource.key == key)


def test_a_name_that_reads_like_a_destination() -> None:
    one = read_queue(resource("q1", 0, queueName="x at a"))
    other = read_queue(resource("q2", 1, queueName="x at b"))
    assert settled([one, other]).lost(other) == {}


def test_many_that_lead_to_one_number_at_peers_of_their_own() -> None:
    """As queue 1 of each branch: none has anything to do with another."""
    claimants = Claimants()
    for each in range(2000):
        one = read_queue(
            resource(f"q{each}", remote={"protocol": "rqp-mca", "queueId": 1, "peers": [f"branch{each}"]})
        )
        assert claimants.put(one.resource.key, one) == set()
        assert claimants.lost(one) == {}
