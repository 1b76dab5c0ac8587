"""Fill the store of the benchmark, and keep what its parts share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.analytics.filling import HOUR_MS, Day, Pipe
from benchmarks.analytics.job import Ended, run_job
from benchmarks.analytics.letters import letters
from benchmarks.analytics.samples import samples
from benchmarks.peers.redis import Store as Server
from benchmarks.peers.tmq import store_url
from benchmarks.process import Workshop
from services.store import QueueSpec, Store
from services.store.model.keys import QUEUE_KEYS, DomainKeys

QUEUES = [f"orders.{number:03}" for number in range(200)]
DEAD = QUEUE_KEYS.index("d")
TWO = 2  # cores of a run, unless said otherwise


@dataclass(slots=True)
class Bench:
    """The context that each part of the benchmark is given."""

    place: Workshop
    server: Server
    say: Callable[[str], None]
    records: int  # dead letters, and as many samples
    hours: int  # that they are of
    dead: list[str] = field(init=False)  # the keys of the dead letters of each queue
    samples: str = field(init=False)
    day: Day = field(init=False)  # contents of the store
    _first: Ended | None = None

    @property
    def url(self) -> str:
        return store_url(self.server.port)

    def output(self, name: str) -> Path:
        return self.place.subfolder(name)

    def run(self, name: str, run: str, cores: int = TWO) -> Ended:
        """Run the job once, with the output of this name."""
        self.say(f"the job on {cores} cores: {name}, {run}")
        return run_job(self.url, self.output(name), run, cores)

    def first(self) -> Ended:
        """Return the first run over all records on two cores, whose output is `first`; it is run once.

        Raises OSError if it has not read exactly the records of the store.
        """
        if self._first is None:
            self._first = expect(self.run("first", "all"), self.day.letters, self.day.samples)
        return self._first

    def add(self, day: Day) -> None:
        """Add letters and samples to the store."""
        if day.letters:
            queues = list(zip(QUEUES, self.dead, strict=True))
            Pipe(self.server.port).send(letters(queues, day))
        if day.samples:
            Pipe(self.server.port).send(samples(self.samples, QUEUES, day))


def expect(ended: Ended, letters: int, samples: int) -> Ended:
    """Return the run. Raises OSError if it has not read exactly these records."""
    if (ended.dead, ended.samples) != (letters, samples):
        raise OSError(f"{letters} letters and {samples} samples were to be read: {ended}")
    return ended


def fill(bench: Bench) -> dict[str, Any]:
    """Fill the store with letters and as many samples, up to an hour ago; it writes nothing to the disk."""
    began = time.monotonic()
    bench.server.start()
    with bench.server.connect() as connection:
        connection.config_set("appendonly", "no")
        now_s, _ = connection.time()
    asyncio.run(_make_queues(bench))
    bench.day = Day(bench.records, bench.records, now_s * 1000 - HOUR_MS, bench.hours)
    bench.add(bench.day)
    filled = {"queues": len(QUEUES), "store_mib": bench.server.info("used_memory") / (1 << 20)}
    return {**asdict(bench.day), **filled, "seconds": time.monotonic() - began}


async def _make_queues(bench: Bench) -> None:
    store = Store(bench.url, "bench")
    try:
        await store.initialise()
        for name in QUEUES:
            await store.catalogue.declare(name, QueueSpec.model_validate({}), "bench")
        queues = [await store.catalogue.find(name) for name in QUEUES]
    finally:
        await store.close()
    bench.dead = [queue.keys[DEAD] for queue in queues]
    bench.samples = DomainKeys(queues[0].domain).samples
