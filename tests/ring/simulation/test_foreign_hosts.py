"""Rings beside a host that is not a node (ring.md 4.6)."""

from __future__ import annotations

import pytest

from tests.ring.simulation.foreign_hosts import Mute
from tests.ring.simulation.plan import quiet_plan
from tests.ring.simulation.trial import OURS_S, probe, settle
from tests.ring.simulation.world import World

AGAIN_AND_AGAIN_S = 3000.0  # as it may be faster than real nodes each time


@pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])
@pytest.mark.parametrize("seed", range(5))
def test_silent_connections_do_not_keep_the_ring_open(seed: int, again: bool) -> None:
    """Check that silent connections do not keep the ring open (4.6).

    Each counts as predecessor after 5 s (3.5), and would hold the node's tail forever.
    """
    plan = quiet_plan(seed, size=3 + seed % 5)
    plan.starts = [0.0, *(20.0 + start for start in plan.starts[1:])]
    world = World(plan)
    Mute(world, 0, at=0.1, again=again)
    world.clock.run_until(15.0)
    assert world.lives[0].predecessor is not None, "it counts as the predecessor"
    assert not settle(world, AGAIN_AND_AGAIN_S if again else OURS_S), f"seed {seed}"
    assert not probe(world), f"seed {seed}"
