"""The faults of a run, made up from its seed: episodes, after each of which everything runs again."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass

STORES = 3
STORE_TARGETS = tuple(f"store {index}" for index in range(STORES))
EDGES = {"edge 0": 0, "edge 1": 1, "edge 2": 2, "edge 0b": 0}  # name: its store
CABLES = tuple(f"cable {index}" for index in range(STORES))  # from the edges of a store to the next one's
SILENCE_S = 2.0  # a link that carries nothing for longer is given up


class Kind(enum.Enum):
    """What may happen."""

    KILL = "kill"  # SIGKILL, and started again
    STOP = "stop"  # SIGSTOP, SIGCONT
    TERM = "term"  # SIGTERM, as an operator would, and started again
    REWRITE = "rewrite"  # the store's AOF is written anew, so that what follows hits it meanwhile
    BREAK = "break"  # every connection through the cable is reset
    PULL = "pull"  # and so are new ones, for a while
    PINCH = "pinch"  # nothing comes through for a while


@dataclass(frozen=True, slots=True)
class Step:
    target: str
    kind: Kind
    after_s: float  # since the episode began, or since the target's step before
    lasts_s: float  # until it runs again


Episode = tuple[Step, ...]  # those of one target one after the other, different targets side by side


def episodes(seed: int) -> Iterator[Episode]:
    """For ever; each shape once before any comes again."""
    rng = random.Random(seed)
    while True:
        for shape in rng.sample(SHAPES, len(SHAPES)):
            yield shape(rng)


def _downtime(rng: random.Random) -> float:
    return rng.choice((0.0, 0.1, rng.uniform(0.2, 1.0), rng.uniform(1.0, 2.5)))


def _standstill(rng: random.Random) -> float:
    """Short, or long enough for the others to have noticed it."""
    return rng.choice((rng.uniform(0.1, 1.0), rng.uniform(SILENCE_S + 0.5, SILENCE_S + 2.0)))


def _kill(rng: random.Random, targets: tuple[str, ...], within_s: float = 0.3) -> Step:
    return Step(rng.choice(targets), Kind.KILL, rng.uniform(0, within_s), _downtime(rng))


def _cable(rng: random.Random, within_s: float = 0.3) -> Step:
    kind = rng.choice((Kind.BREAK, Kind.PULL, Kind.PINCH))
    lasts_s = 0.0 if kind is Kind.BREAK else _standstill(rng)
    return Step(rng.choice(CABLES), kind, rng.uniform(0, within_s), lasts_s)


def _one_edge(rng: random.Random) -> Episode:
    return (_kill(rng, tuple(EDGES)),)


def _one_store(rng: random.Random) -> Episode:
    return (_kill(rng, STORE_TARGETS),)


def _one_cable(rng: random.Random) -> Episode:
    return (_cable(rng),)


def _all_cables(rng: random.Random) -> Episode:
    """The stores are alone for a while."""
    lasts_s = _standstill(rng)
    return tuple(Step(cable, Kind.PULL, 0.0, lasts_s + rng.uniform(0, 1.0)) for cable in CABLES)


def _cable_and_edge(rng: random.Random) -> Episode:
    return (_cable(rng), _kill(rng, tuple(EDGES)))


def _store_and_edge(rng: random.Random) -> Episode:
    return (_kill(rng, STORE_TARGETS), _kill(rng, tuple(EDGES)))


def _two_stores(rng: random.Random) -> Episode:
    return tuple(
        Step(store, Kind.KILL, rng.uniform(0, 0.3), _downtime(rng)) for store in rng.sample(STORE_TARGETS, 2)
    )


def _the_follower(rng: random.Random) -> Episode:
    """Of two edges on one store: the other takes over."""
    return (_kill(rng, ("edge 0", "edge 0b")),)


def _while_it_comes_back(rng: random.Random) -> Episode:
    first = _kill(rng, (*STORE_TARGETS, *EDGES))
    return (first, Step(first.target, Kind.KILL, rng.uniform(0, 1.5), _downtime(rng)))


def _stands_still(rng: random.Random) -> Episode:
    return (Step(rng.choice((*STORE_TARGETS, *EDGES)), Kind.STOP, 0.0, _standstill(rng)),)


def _one_stands_still_another_dies(rng: random.Random) -> Episode:
    first, second = rng.sample((*STORE_TARGETS, *EDGES), 2)
    still = Step(first, Kind.STOP, 0.0, _standstill(rng))
    return (still, Step(second, Kind.KILL, rng.uniform(0, still.lasts_s), _downtime(rng)))


def _an_operator(rng: random.Random) -> Episode:
    return (Step(rng.choice(tuple(EDGES)), Kind.TERM, 0.0, _downtime(rng)),)


def _while_the_log_is_rewritten(rng: random.Random) -> Episode:
    store = rng.choice(STORE_TARGETS)
    return (Step(store, Kind.REWRITE, 0.0, 0.0), Step(store, Kind.KILL, rng.uniform(0, 0.3), _downtime(rng)))


SHAPES = (
    _one_edge,
    _one_store,
    _one_cable,
    _one_cable,
    _all_cables,
    _cable_and_edge,
    _store_and_edge,
    _two_stores,
    _the_follower,
    _while_it_comes_back,
    _stands_still,
    _one_stands_still_another_dies,
    _an_operator,
    _while_the_log_is_rewritten,
)
