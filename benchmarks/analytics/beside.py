"""What an edge notices: messages a second that go through it, with the job at work on the same store and without."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.analytics.job import Job
from benchmarks.generator import Bound, Generator
from benchmarks.peers.peer import ONE_AT_A_TIME
from benchmarks.peers.tmq import Tmq

WINDOW = Bound(10_000_000, 2.0)


@dataclass(slots=True)
class Noticed:
    without: list[float] = field(default_factory=list)  # messages/s of each look
    during: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return statistics.median(self.during) / statistics.median(self.without)


def noticed(edge: Tmq, generator: Generator, job: Callable[[], Job], looks: int) -> Noticed:
    """Looks without, then for as long as the job runs, then without again."""
    found = Noticed()
    _rate(edge, generator)  # not counted
    found.without += [_rate(edge, generator) for _ in range(looks)]
    running = job().begin()
    try:
        while not running.has_begun() and not running.is_over():
            _rate(edge, generator)
        while not running.is_over():
            rate = _rate(edge, generator)
            if not running.is_over():
                found.during.append(rate)
    finally:
        running.end()
    found.without += [_rate(edge, generator) for _ in range(looks)]
    return found


def _rate(edge: Tmq, generator: Generator) -> float:
    """Messages put in, and then taken out, a second."""
    outcomes = edge.measure(generator, ONE_AT_A_TIME, WINDOW).values()
    return sum(each.messages for each in outcomes) / sum(each.seconds for each in outcomes)
