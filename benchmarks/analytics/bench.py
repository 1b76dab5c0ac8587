"""The context that each part of the benchmark is given."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.analytics.filling import Day, Pipe
from benchmarks.analytics.job import Job
from benchmarks.analytics.letters import letters
from benchmarks.analytics.samples import samples
from benchmarks.generator import Generator
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import Tmq, store_url
from benchmarks.process import Workshop
from services.store.model.keys import QUEUE_KEYS, DomainKeys, RegistryKeys

QUEUES = 200
DEAD = QUEUE_KEYS.index("d")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of the filled streams."""

    dead: list[str]
    samples: str


@dataclass(slots=True)
class Bench:
    place: Workshop
    store: Store
    edge: Tmq
    generator: Generator
    say: Callable[[str], None]
    rounds: int
    day: Day = field(init=False)  # contents of the store
    keys: Keys = field(init=False)
    output: Path | None = None  # of a run that has read all records
    _jobs: int = 0

    @property
    def url(self) -> str:
        return store_url(self.store.port)

    def job(self, master: str, folder: Path | None = None, **how: Any) -> Job:
        """Return a run over all records, from the beginning, with an output of its own (in `folder` if given)."""
        self._jobs += 1
        name = f"run{self._jobs}"
        output = (folder or self.place.folder) / name
        output.mkdir()
        return Job(self.url, output, name, master, self.place.folder / f"{name}.log", **how)


def fill(bench: Bench, records: int, hours: int) -> dict[str, Any]:
    """Add letters and as many samples; meanwhile the store writes to the disk but does not wait for fsync."""
    began = time.monotonic()
    names = [f"orders.{number:03}" for number in range(QUEUES)]
    _make_queues(bench, names)
    with bench.store.connect() as server:
        server.config_set("appendfsync", "everysec")
        told = server.hgetall(RegistryKeys().queues)
        known = {name.decode(): json.loads(text) for name, text in told.items()}
        domain = DomainKeys(known[names[0]]["domain"])
        bench.keys = Keys([domain.queue(known[name]["qid"])[DEAD] for name in names], domain.samples)
        server.delete(domain.samples, *bench.keys.dead)
        now_s, _ = server.time()
        bench.day = Day(records, records, now_s * 1000 - 60_000, hours)
        Pipe(bench.store.port).send(letters(list(zip(names, bench.keys.dead, strict=True)), bench.day))
        Pipe(bench.store.port).send(samples(domain.samples, names, bench.day))
        server.config_set("appendfsync", "always")
    memory_mib = bench.store.info("used_memory") / (1 << 20)
    return {
        **asdict(bench.day),
        **{"queues": QUEUES, "seconds": time.monotonic() - began, "store_mib": memory_mib},
    }


def _make_queues(bench: Bench, names: list[str]) -> None:
    bench.edge.start()
    for name in names:
        bench.edge.create(name)
    bench.edge.delete("ready")  # the queue that shows readiness; the next start creates it again
    bench.edge.stop()  # a running edge would add samples of its own


def keep_some(bench: Bench, records: int) -> None:
    """Trim the streams to the newest `records` letters and as many samples."""
    with bench.store.connect() as server:
        for key in bench.keys.dead:
            server.xtrim(key, maxlen=records // QUEUES, approximate=False)
        server.xtrim(bench.keys.samples, maxlen=records, approximate=False)
    bench.day = replace(bench.day, letters=records // QUEUES * QUEUES, samples=records)
