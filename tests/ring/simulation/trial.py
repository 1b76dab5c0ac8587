"""Run one seed, from its first start to the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

from protos.ring import Times
from tests.ring.simulation import checker
from tests.ring.simulation.plan import Plan, plan_of
from tests.ring.simulation.world import World

OURS_S = 900.0  # after the last fault: time until one ring with one leader
MIXED_S = 1500.0  # the same with originals
HOLD_S = 130.0  # how long it must last: two FINDs
STEP_S = 5.0
PROBE_S = 30.0  # time for messages put on a whole ring to go around


@dataclass(slots=True)
class Verdict:
    """The result of one seed. `wrong` is empty if all checks passed; `settled_s` counts from the last fault.

    `stranded` originals are in rings of their own without a leader: nothing is checked of them.
    """

    seed: int
    settled_s: float = 0.0
    stranded: int = 0
    wrong: list[str] = field(default_factory=list)


def run(
    plan: Plan, times: Times | None = None, keeps_ids: bool = True, story: list[str] | None = None
) -> Verdict:
    return judge(World(plan, times, keeps_ids, story))


def run_seed(seed: int, story: list[str] | None = None) -> Verdict:
    return run(plan_of(seed), story=story)


def judge(world: World) -> Verdict:
    verdict = Verdict(world.plan.seed)
    why = settle(world, bound_of(world.plan))
    verdict.settled_s = world.clock.now - HOLD_S - world.plan.last_fault
    verdict.stranded = len(checker.stranded(world))
    if why:
        verdict.wrong.append(why)
    else:
        verdict.wrong += probe(world)
    verdict.wrong += checker.wrong_pushes(world)
    if not world.plan.originals:
        verdict.wrong += checker.lost_users(world)
    return verdict


def bound_of(plan: Plan) -> float:
    return MIXED_S if plan.originals else OURS_S


def settle(world: World, within_s: float) -> str:
    """Return '' once one ring and one leader have lasted for HOLD_S; else the last violation.

    They must exist `within_s` seconds from now, or from the last fault if that is still to come.
    """
    world.clock.run_until(max(world.clock.now, world.plan.last_fault))
    end = world.clock.now + within_s
    since: float | None = None
    why = ""
    while since is not None or world.clock.now < end:
        world.clock.run_until(world.clock.now + STEP_S)
        now_wrong = wrong_now(world)
        if now_wrong:
            since, why = None, now_wrong
        elif since is None:
            since = world.clock.now
        elif world.clock.now - since >= HOLD_S:
            return ""
    return f"not settled: {why}"


def wrong_now(world: World) -> str:
    stranded = checker.stranded(world)
    lives = [life for life in world.lives.values() if life.name not in stranded]
    return checker.wrong_ring(lives) or checker.wrong_leader(lives)


def probe(world: World) -> list[str]:
    """Send from every living node, from the first an empty USER; check that all arrive and leave the ring."""
    stranded = checker.stranded(world)
    senders = [number for number, life in world.lives.items() if life.name not in stranded]
    news = [(number, world.put_on(number, None if at else b"")) for at, number in enumerate(senders)]
    pushes = [request for number in world.lives if (request := world.push(number)) is not None]
    world.clock.run_until(world.clock.now + PROBE_S)
    wrong = [each for each in [checker.circling(world)] if each]
    for number, payload in news:
        assert payload is not None
        wrong += checker.undelivered(world, payload, number)
    if any(number in world.lives for number in world.plan.serves):
        wrong += [f"{each.decode()} was not applied" for each in pushes if not world.serving.applied[each]]
    return wrong
