"""Hung nodes keep their connections: neighbours of ours close the ring without them (ring.md 4.6)."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.ring.simulation import checker
from tests.ring.simulation.plan import Event, Fault, quiet_plan
from tests.ring.simulation.trial import MIXED_S, settle
from tests.ring.simulation.world import World

SEEDS = 10


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(("size", "originals"), [(3, 0), (3, 1), (4, 1), (6, 1)])
def test_ring_closes_around_a_hung_node(size: int, originals: int, steps: int) -> None:
    tried = (seed for seed in range(SEEDS) if hangs_and_heals(seed, size, originals, steps))
    assert len(list(islice(tried, 2))) == 2


def hangs_and_heals(seed: int, size: int, originals: int, steps: int) -> bool:
    """Stop the node that is so many places before the leader; return False if a neighbour of it is an original."""
    world = World(quiet_plan(seed, size, originals))
    assert settle(world, MIXED_S) == "", f"seed {seed}"
    leader = next(life for life in world.lives.values() if life.is_leader)
    ring = checker.around(leader)
    at = size - steps
    if ring[at - 1].is_original or ring[(at + 1) % size].is_original:
        return False
    hung = next(number for number, life in world.lives.items() if life is ring[at])
    now = world.clock.now
    world.plan.events.append(Event(now + 1.0, Fault.STOP, (hung,)))
    world.clock.at(now + 1.0, world.happen, world.plan.events[-1])
    assert settle(world, MIXED_S) == "", f"seed {seed}"
    return True
