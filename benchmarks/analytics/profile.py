"""Explain the scaling from one core to two: the gain of a second core at best, and the processes busy in a read."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.analytics.bench import Bench
from benchmarks.analytics.reading import CORES, WARM_UP, rows_of
from benchmarks.analytics.sessions import session
from services.redis_stream.schema import Kind

LOOK_S = 0.1
LOOP_S = 3.0
LOOPS = 3
TICKS = os.sysconf("SC_CLK_TCK")
STORE, JVM, PYTHON = "store", "JVM", "Python"


def measure(bench: Bench) -> dict[str, Any]:
    """Measure `loops` (rate of two computing processes / one) and `reads` (busy cores by kind, cores and process)."""
    found: dict[str, Any] = {"loops": [_loops(2) / _loops(1) for _ in range(LOOPS)], "reads": {}}
    for name, cores in CORES.items():
        with session(cores) as spark:
            for kind in (Kind.DEAD, Kind.SAMPLES):
                bench.say(f"who is at work while Spark reads {kind}, {name}")
                part = bench.day.begin_ms + bench.day.ms // WARM_UP
                rows_of(spark, bench.url, kind, end=f"{part}-0")
                with at_work(bench.store.daemon.pid) as seen:
                    rows_of(spark, bench.url, kind)
                found["reads"].setdefault(str(kind), {})[name] = dict(seen)
    return found


def _loops(number: int) -> float:
    """Return the rounds a second of `number` processes together."""
    told: SimpleQueue[float] = multiprocessing.get_context("fork").SimpleQueue()
    processes = [
        multiprocessing.get_context("fork").Process(target=_loop, args=(told,)) for _ in range(number)
    ]
    for each in processes:
        each.start()
    rates = [told.get() for _ in processes]
    for each in processes:
        each.join()
    return sum(rates)


def _loop(told: SimpleQueue[float]) -> None:
    began, rounds = time.monotonic(), 0
    while (took := time.monotonic() - began) < LOOP_S:
        sum(range(10_000))
        rounds += 1
    told.put(rounds / took)


@contextmanager
def at_work(store: int) -> Iterator[dict[str, float]]:
    """Yield a dict for the average busy cores by owner, filled in at the end of the `with` block."""
    seen: dict[str, float] = {}
    first, last, over = _times(store), dict[int, tuple[str, float]](), Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            last.update(_times(store))

    thread = Thread(target=look)
    began = time.monotonic()
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        last.update(_times(store))
        took = time.monotonic() - began
        for pid, (whose, seconds) in last.items():
            before = first[pid][1] if pid in first else 0.0
            seen[whose] = seen.get(whose, 0.0) + (seconds - before) / took


def _times(store: int) -> dict[int, tuple[str, float]]:
    """Return owner and CPU seconds of this process and its descendants; this process counts as Python."""
    found: dict[int, tuple[str, float]] = {}
    rest = [(os.getpid(), PYTHON)]
    while rest:
        pid, whose = rest.pop()
        with suppress(OSError):  # it has ended
            name, _, told = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
            whose = STORE if pid == store else JVM if name == "java" else PYTHON if whose == JVM else whose
            fields = told.split()
            found[pid] = whose, (int(fields[11]) + int(fields[12])) / TICKS
            for task in Path(f"/proc/{pid}/task").iterdir():
                rest += [(int(child), whose) for child in (task / "children").read_text().split()]
    return found
