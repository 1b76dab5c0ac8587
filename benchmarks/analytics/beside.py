"""Measure the job's effect on an edge of the same store: at full load, and at a pace that the edge can keep.

Store, edge, generator and job share the cores. Each condition removes one thing that they would not share if the job
ran on another machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.analytics.bench import Bench
from benchmarks.analytics.job import Job
from benchmarks.generator import Bound
from benchmarks.machine import filesystem_of
from benchmarks.peers.peer import ONE_AT_A_TIME
from benchmarks.peers.tmq import Tmq
from benchmarks.plan import PACED

MASTER = "local[2]"
COUNT = 10_000_000  # more than any measurement reaches
TAKEN_S = 60.0  # time limit for taking out the messages put in
MOST_S = 180.0  # time limit for one job: in the idle class it may never finish
START_S = 180.0  # time limit for the start of Spark
WAIT_S = 0.1  # between checks whether Spark has started
HALF = 0.5  # pace, as a share of the full rate
MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    elsewhere: bool = False  # output and scratch are on another file system than the store's log
    idle: bool = False  # the job runs in the idle class: only on CPU time that is left over


CONDITIONS = (
    Condition("as it is"),
    Condition("output not on the store's disk", elsewhere=True),
    Condition("idle class", idle=True),
    Condition("idle class, output not on the store's disk", elsewhere=True, idle=True),
)


@dataclass(frozen=True, slots=True)
class Looks:
    """The number and the length of the measurements."""

    number: int = 4  # before the job, and after it
    seconds: float = 2.0  # of each
    conditions: tuple[Condition, ...] = CONDITIONS


@dataclass(slots=True)
class Look:
    step: str  # of the job; '': the job does not run
    put: float  # messages a second at full load, one at a time on 50 connections
    both: float  # the same, put in and then taken out
    paced: float = 0.0  # messages a second that were put in at a fixed pace
    p50_us: float = 0.0  # from the time when a message was due
    p99_us: float = 0.0


@dataclass(slots=True)
class Noticed:
    pace: float  # messages a second that are offered
    is_over: bool = False  # the job ended within MOST_S
    seconds: float = 0.0  # from the start of the job to its end, or until it was stopped
    pages: int = 0  # XRANGEs that the store answered during the job
    pages_s: float = 0.0  # time that the store's one thread spent on them
    without: list[Look] = field(default_factory=list)
    during: list[Look] = field(default_factory=list)


def measure(bench: Bench, looks: Looks) -> dict[str, Any]:
    """Measure each condition; one that is unavailable here has the reason instead."""
    bench.edge.start()
    pace = round(HALF * statistics.median(_look(bench, looks).put for _ in range(3)))
    found = dict[str, Any]()
    for each in looks.conditions:
        bench.say(f"an edge beside the job, {each.name}")
        try:
            with ExitStack() as stack:
                found[each.name] = asdict(_noticed(bench, looks, pace, _prepared(bench, each, stack)))
        except OSError as failure:
            found[each.name] = {"note": f"not run: {failure}"}
    return found


def _prepared(bench: Bench, condition: Condition, stack: ExitStack) -> Callable[[], Job]:
    """Return a function that makes the job. Raises OSError if there is no second file system."""
    idle = condition.idle
    if not condition.elsewhere:
        return lambda: bench.job(MASTER, is_idle=idle)
    if filesystem_of(MEMORY) == filesystem_of(bench.place.folder):
        raise OSError(f"{MEMORY} is on the file system of {bench.place.folder}")
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="penstock-bench-", dir=MEMORY)))
    settings = ("--conf", f"spark.local.dir={folder}")
    return lambda: bench.job(MASTER, folder, is_idle=idle, settings=settings)


def _noticed(bench: Bench, looks: Looks, pace: float, job: Callable[[], Job]) -> Noticed:
    """Measure without the job, while it runs, and without it again. Raises OSError if the job fails."""
    found = Noticed(pace)
    found.without += [_look(bench, looks, pace) for _ in range(looks.number)]
    pages, pages_s = _pages(bench)
    running, began = job().begin(), time.monotonic()
    try:
        found.during += _looks_during(bench, looks, pace, running)
        found.is_over, found.seconds = running.is_over(), time.monotonic() - began
        now, now_s = _pages(bench)
        found.pages, found.pages_s = now - pages, now_s - pages_s
    finally:
        if running.is_over():
            running.end()
        else:
            running.give_up()
    found.without += [_look(bench, looks, pace) for _ in range(looks.number)]
    return found


def _pages(bench: Bench) -> tuple[int, float]:
    """Return the number of XRANGEs since the store was started, and the seconds that they took."""
    with bench.store.connect() as server:
        told = server.info("commandstats").get("cmdstat_xrange", {"calls": 0, "usec": 0})
    return told["calls"], told["usec"] / 1e6


def _looks_during(bench: Bench, looks: Looks, pace: float, job: Job) -> Iterator[Look]:
    """Yield the measurements since Spark has started, without the one in which the job ends if there is another.

    Raises OSError if there are none.
    """
    step, is_first, begun = _started(job), True, time.monotonic()
    while step and not job.is_over() and (is_first or time.monotonic() < begun + MOST_S):
        look = _look(bench, looks, pace)
        if is_first or not job.is_over():
            look.step, is_first = step, False
            yield look
        step = job.step()
    if is_first:
        raise OSError(f"the job ended, or had not begun to read after {START_S:.0f} s")


def _started(job: Job) -> str:
    """Wait until Spark has started and return the step of the job."""
    end = time.monotonic() + START_S
    while not (step := job.step()) and not job.is_over() and time.monotonic() < end:
        time.sleep(WAIT_S)
    return step


def _look(bench: Bench, looks: Looks, pace: float = 0.0) -> Look:
    edge, generator = bench.edge, bench.generator
    with _queue(edge) as queue:
        put = edge.put(generator, ONE_AT_A_TIME, Bound(COUNT, looks.seconds), queue)
        taken = edge.take(generator, ONE_AT_A_TIME, Bound(put.settled, TAKEN_S), queue)
    found = Look("", put.rate, (put.messages + taken.messages) / (put.seconds + taken.seconds))
    if pace:
        with _queue(edge) as queue:
            bound = Bound(int(pace * looks.seconds), looks.seconds * 2, pace)
            seen = edge.put(generator, PACED, bound, queue)
        found.paced, found.p50_us, found.p99_us = seen.rate, seen.p50_us, seen.p99_us
    return found


@contextmanager
def _queue(edge: Tmq) -> Iterator[str]:
    """Yield a new queue, which is deleted afterwards."""
    queue = edge.next_queue()
    edge.create(queue)
    try:
        yield queue
    finally:
        edge.delete(queue)
