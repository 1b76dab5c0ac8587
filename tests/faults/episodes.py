"""Faults of a run with several stores, planned from its seed as episodes; all processes run again after each."""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Kind(enum.Enum):
    """Kinds of faults of a process or a cable."""

    KILL = "kill"  # SIGKILL, then restart
    STOP = "stop"  # SIGSTOP, then SIGCONT
    TERM = "term"  # SIGTERM, as by an operator, then restart
    REWRITE = "rewrite"  # starts a rewrite of the store's AOF, so that the next step falls into it
    BREAK = "break"  # resets every connection through the cable
    PULL = "pull"  # also resets new connections, for a while
    PINCH = "pinch"  # passes no data for a while


@dataclass(frozen=True, slots=True)
class Step:
    target: str
    kind: Kind
    after_s: float  # from the start of the episode, or from the target's previous step
    lasts_s: float  # until it runs again


Episode = tuple[Step, ...]  # steps of one target run in sequence, different targets in parallel


@dataclass(frozen=True, slots=True)
class Scene:
    """Names of all targets of faults."""

    stores: tuple[str, ...]
    edges: tuple[str, ...]
    cables: tuple[str, ...]
    pair: tuple[str, ...]  # two edges on one store: each takes over from the other
    silence_s: float  # a peer that is silent for longer is considered dead

    @property
    def processes(self) -> tuple[str, ...]:
        return (*self.stores, *self.edges)


def episodes(seed: int, scene: Scene) -> Iterator[Episode]:
    """Yield episodes without end, each shape once before any is repeated."""
    rng = random.Random(seed)
    while True:
        for shape in rng.sample(SHAPES, len(SHAPES)):
            yield shape(rng, scene)


def _downtime(rng: random.Random) -> float:
    return rng.choice((0.0, 0.1, rng.uniform(0.2, 1.0), rng.uniform(1.0, 2.5)))


def _standstill(rng: random.Random, scene: Scene) -> float:
    """Return a short time, or one long enough for peers to notice."""
    return rng.choice((rng.uniform(0.1, 1.0), rng.uniform(scene.silence_s + 0.5, scene.silence_s + 2.0)))


def _kill(rng: random.Random, targets: tuple[str, ...], within_s: float = 0.3) -> Step:
    return Step(rng.choice(targets), Kind.KILL, rng.uniform(0, within_s), _downtime(rng))


def _cable(rng: random.Random, scene: Scene, within_s: float = 0.3) -> Step:
    kind = rng.choice((Kind.BREAK, Kind.PULL, Kind.PINCH))
    lasts_s = 0.0 if kind is Kind.BREAK else _standstill(rng, scene)
    return Step(rng.choice(scene.cables), kind, rng.uniform(0, within_s), lasts_s)


def _one_edge(rng: random.Random, scene: Scene) -> Episode:
    return (_kill(rng, scene.edges),)


def _one_store(rng: random.Random, scene: Scene) -> Episode:
    return (_kill(rng, scene.stores),)


def _one_cable(rng: random.Random, scene: Scene) -> Episode:
    return (_cable(rng, scene),)


def _all_cables(rng: random.Random, scene: Scene) -> Episode:
    """Isolate the stores for a while."""
    lasts_s = _standstill(rng, scene)
    return tuple(Step(cable, Kind.PULL, 0.0, lasts_s + rng.uniform(0, 1.0)) for cable in scene.cables)


def _cable_and_edge(rng: random.Random, scene: Scene) -> Episode:
    return (_cable(rng, scene), _kill(rng, scene.edges))


def _store_and_edge(rng: random.Random, scene: Scene) -> Episode:
    return (_kill(rng, scene.stores), _kill(rng, scene.edges))


def _two_stores(rng: random.Random, scene: Scene) -> Episode:
    return tuple(
        Step(store, Kind.KILL, rng.uniform(0, 0.3), _downtime(rng)) for store in rng.sample(scene.stores, 2)
    )


def _one_of_the_pair(rng: random.Random, scene: Scene) -> Episode:
    """Kill one of two edges on one store; the other takes over."""
    return (_kill(rng, scene.pair),)


def _while_it_comes_back(rng: random.Random, scene: Scene) -> Episode:
    first = _kill(rng, scene.processes)
    return (first, Step(first.target, Kind.KILL, rng.uniform(0, 1.5), _downtime(rng)))


def _stands_still(rng: random.Random, scene: Scene) -> Episode:
    return (Step(rng.choice(scene.processes), Kind.STOP, 0.0, _standstill(rng, scene)),)


def _one_stands_still_another_dies(rng: random.Random, scene: Scene) -> Episode:
    first, second = rng.sample(scene.processes, 2)
    still = Step(first, Kind.STOP, 0.0, _standstill(rng, scene))
    return (still, Step(second, Kind.KILL, rng.uniform(0, still.lasts_s), _downtime(rng)))


def _an_operator(rng: random.Random, scene: Scene) -> Episode:
    return (Step(rng.choice(scene.edges), Kind.TERM, 0.0, _downtime(rng)),)


def _while_the_log_is_rewritten(rng: random.Random, scene: Scene) -> Episode:
    store = rng.choice(scene.stores)
    return (Step(store, Kind.REWRITE, 0.0, 0.0), Step(store, Kind.KILL, rng.uniform(0, 0.3), _downtime(rng)))


SHAPES: tuple[Callable[[random.Random, Scene], Episode], ...] = (
    _one_edge,
    _one_store,
    _one_cable,
    _one_cable,
    _all_cables,
    _cable_and_edge,
    _store_and_edge,
    _two_stores,
    _one_of_the_pair,
    _while_it_comes_back,
    _stands_still,
    _one_stands_still_another_dies,
    _an_operator,
    _while_the_log_is_rewritten,
)
