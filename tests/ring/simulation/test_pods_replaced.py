"""Rings of pods that are killed and replaced, with the times of tests/e2e: they heal within the limits of its tests."""

from __future__ import annotations

from random import Random

import pytest

from protos.ring import Times
from tests.e2e.release import FULL, RING_S, RING_TIMES
from tests.ring.simulation import checker
from tests.ring.simulation.plan import Event, Fault, Plan
from tests.ring.simulation.world import World

SEEDS = 100
WHOLE_S = 100.0  # from the start, without faults
FAULTS_FOR_S = 20.0
NODE = f"{FULL}-ring-%d.{FULL}-ring-peers.e2e-%08x.svc.cluster.local:8085"
STEP_S = 1.0


def plan_of(seed: int) -> Plan:
    """Return a plan of three nodes, of which up to three die for some seconds; some lose their address, too."""
    rng = Random(seed)
    place = rng.getrandbits(32)
    events: list[Event] = []
    for node in rng.sample(range(3), rng.randint(1, 3)):
        time = WHOLE_S + rng.uniform(0, FAULTS_FOR_S)
        events.append(Event(time, rng.choice([Fault.KILL, Fault.OFF]), (node,)))
        events.append(Event(time + rng.uniform(1, 12), Fault.RESTART, (node,)))
    names = [(NODE % (number, place)).encode() for number in range(3)]
    starts = [rng.uniform(0, 5) for _ in names]
    return Plan(
        seed,
        names,
        frozenset(),
        frozenset(range(3)),
        starts,
        window=1,
        forwards=False,
        answers=0.0,
        beacon_loss=0.0,
        events=sorted(events, key=lambda event: event.time),
    )


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_replaced_pods_form_one_ring_in_time(first: int) -> None:
    late = {seed: why for seed in range(first, first + 50) if (why := wrong_after(plan_of(seed), RING_S))}
    assert not late


def wrong_after(plan: Plan, patience_s: float) -> str:
    """Return '' as soon as all are one ring after the last fault; else the last violation."""
    world = World(plan, Times(**RING_TIMES))
    world.clock.run_until(WHOLE_S)
    assert not checker.wrong_ring(list(world.lives.values())), f"seed {plan.seed}: no ring to begin with"
    world.clock.run_until(plan.last_fault)
    end = world.clock.now + patience_s
    while wrong := checker.wrong_ring(list(world.lives.values())):
        if world.clock.now >= end:
            return wrong
        world.clock.run_until(world.clock.now + STEP_S)
    return ""
