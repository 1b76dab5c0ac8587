"""Faults of a run, planned from its seed as episodes; all processes run again after each."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass

EDGES = 2
STORE = "store"
TARGETS = (STORE, *(f"edge {index}" for index in range(EDGES)))
SESSION_TIMEOUT_S = 3.0  # the other edge sweeps an edge that stands still for longer
REPLY_TIMEOUT_S = 1.5  # edges retry on a new connection when the store stands still for longer
REQUEST_TIMEOUT_S = 6.0  # clients get no answer when the store stands still for longer


class Kind(enum.Enum):
    """Kinds of faults of a process."""

    KILL = "kill"  # SIGKILL, then restart
    STOP = "stop"  # SIGSTOP, then SIGCONT
    FREEZE = "freeze"  # SIGSTOP, then SIGKILL while stopped
    TERM = "term"  # SIGTERM, as by an operator, then restart
    REWRITE = "rewrite"  # starts a rewrite of the store's AOF, so that the next step falls into it


KILLING = frozenset((Kind.KILL, Kind.FREEZE))


@dataclass(frozen=True, slots=True)
class Step:
    target: str
    kind: Kind
    after_s: float  # from the start of the episode, or from the target's previous step
    lasts_s: float  # until it runs again


Episode = tuple[Step, ...]  # steps of one target run in sequence, different targets in parallel


def episodes(seed: int) -> Iterator[Episode]:
    """Yield random episodes without end."""
    rng = random.Random(seed)
    while True:
        yield rng.choice(SHAPES)(rng)


def _downtime(rng: random.Random) -> float:
    """Return a downtime, often so short that peers do not notice."""
    return rng.choice((0.0, 0.05, rng.uniform(0.1, 1.0), rng.uniform(0.5, 2.5)))


def _standstill(rng: random.Random, notable_s: float) -> float:
    """Return a short time, or one long enough for a time-out to expire."""
    return rng.choice((rng.uniform(0.05, 0.8), rng.uniform(notable_s + 0.5, notable_s + 2.5)))


def _kill(rng: random.Random, target: str, within_s: float = 0.0) -> Step:
    return Step(target, Kind.KILL, rng.uniform(0, within_s), _downtime(rng))


def _edge(rng: random.Random) -> str:
    return rng.choice(TARGETS[1:])


def _one_edge(rng: random.Random) -> Episode:
    return (_kill(rng, _edge(rng)),)


def _the_store(rng: random.Random) -> Episode:
    return (_kill(rng, STORE),)


def _store_and_edge(rng: random.Random) -> Episode:
    return (_kill(rng, STORE, 0.3), _kill(rng, _edge(rng), 0.3))


def _both_edges(rng: random.Random) -> Episode:
    return tuple(_kill(rng, target, 0.3) for target in TARGETS[1:])


def _everything(rng: random.Random) -> Episode:
    return tuple(_kill(rng, target, 0.2) for target in TARGETS)


def _while_it_comes_back(rng: random.Random) -> Episode:
    target = rng.choice(TARGETS)
    return (_kill(rng, target), Step(target, Kind.KILL, rng.uniform(0, 1.0), _downtime(rng)))


def _store_stands_still(rng: random.Random) -> Episode:
    return (Step(STORE, rng.choice((Kind.STOP, Kind.FREEZE)), 0.0, _standstill(rng, REPLY_TIMEOUT_S)),)


def _until_clients_are_left_without_an_answer(rng: random.Random) -> Episode:
    return (Step(STORE, Kind.STOP, 0.0, REQUEST_TIMEOUT_S + rng.uniform(0.3, 2.0)),)


def _edge_dies_with_a_standing_store(rng: random.Random) -> Episode:
    still = Step(STORE, Kind.STOP, 0.0, _standstill(rng, REPLY_TIMEOUT_S))
    return (still, _kill(rng, _edge(rng), still.lasts_s))


def _edge_stands_still(rng: random.Random) -> Episode:
    return (Step(_edge(rng), Kind.STOP, 0.0, _standstill(rng, SESSION_TIMEOUT_S)),)


def _one_stands_still_the_other_dies(rng: random.Random) -> Episode:
    first, second = rng.sample(TARGETS[1:], 2)
    still = Step(first, Kind.STOP, 0.0, _standstill(rng, SESSION_TIMEOUT_S))
    return (still, _kill(rng, second, still.lasts_s))


def _an_operator(rng: random.Random) -> Episode:
    return (Step(rng.choice(TARGETS), Kind.TERM, 0.0, _downtime(rng)),)


def _while_the_log_is_rewritten(rng: random.Random) -> Episode:
    return (
        Step(STORE, Kind.REWRITE, 0.0, 0.0),
        Step(STORE, Kind.KILL, rng.uniform(0, 0.3), _downtime(rng)),
    )


SHAPES = (
    *(_one_edge, _the_store) * 2,
    _store_and_edge,
    _both_edges,
    _everything,
    *(_while_it_comes_back,) * 2,
    _store_stands_still,
    _until_clients_are_left_without_an_answer,
    _edge_dies_with_a_standing_store,
    *(_edge_stands_still,) * 2,
    _one_stands_still_the_other_dies,
    _an_operator,
    _while_the_log_is_rewritten,
)
