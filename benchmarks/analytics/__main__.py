"""python -m benchmarks.analytics: the analytics job on a day of dead letters and samples, and what it is held against.

Fills a store of its own, reads it with Spark and with a plain loop, runs the whole job on one core and on two, asks
the archive the same question with Spark, DuckDB and pandas, and looks at an edge while a run is at work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.analytics import others, reading
from benchmarks.analytics.beside import noticed
from benchmarks.analytics.filling import Day, Pipe, letters, samples
from benchmarks.analytics.job import Job
from benchmarks.analytics.shown import show
from benchmarks.generator import Generator
from benchmarks.machine import current_commit, describe
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import Tmq, store_url
from benchmarks.process import Workshop, workshop
from benchmarks.results import RESULTS
from services.analytics.schema import Kind
from services.store.keys import DomainKeys, RegistryKeys

RECORDS = 5_000_000  # dead letters, and as many samples
QUEUES = 200
ROUNDS = 3
LOOKS = 5


@dataclass(slots=True)
class Bench:
    place: Workshop
    store: Store
    edge: Tmq
    generator: Generator
    say: Callable[[str], None]
    rounds: int
    found: dict[str, Any] = field(default_factory=dict)
    runs: int = 0

    @property
    def url(self) -> str:
        return store_url(self.store.port)

    def job(self, master: str, nice: tuple[str, ...] = ()) -> Job:
        """A run of its own output: all there is, from the beginning."""
        self.runs += 1
        name = f"run{self.runs}"
        output = self.place.subfolder(name)
        return Job(self.url, output, name, master, self.place.folder / f"{name}.log", nice)


def fill(bench: Bench, records: int) -> Day:
    """A day's records; the store writes to the disk meanwhile, but does not wait for it."""
    began = time.monotonic()
    names = [f"orders.{number:03}" for number in range(QUEUES)]
    bench.edge.start()
    for name in names:
        bench.edge.create(name)
    bench.edge.delete("ready")  # by which it is known to be so; the next start makes it anew
    bench.edge.stop()  # it would tell of itself in between
    with bench.store.connect() as server:
        server.config_set("appendfsync", "everysec")
        known = {
            name.decode(): json.loads(text) for name, text in server.hgetall(RegistryKeys().queues).items()
        }
        domain = DomainKeys(known[names[0]]["domain"])
        keys = [(name, DomainKeys(known[name]["domain"]).queue(known[name]["qid"])[6]) for name in names]
        server.delete(domain.samples, *(key for _, key in keys))
        now_s, _ = server.time()
        day = Day(records, records, now_s * 1000 - 60_000)
        Pipe(bench.store.port).send(letters(keys, day))
        Pipe(bench.store.port).send(samples(domain.samples, names, day))
        server.config_set("appendfsync", "always")
    bench.found["fill"] = {
        **asdict(day),
        "queues": QUEUES,
        "seconds": time.monotonic() - began,
        "store_mib": bench.store.info("used_memory") / (1 << 20),
    }
    bench.found["keys"] = {"dead": [key for _, key in keys], "samples": [domain.samples]}
    return day


def read(bench: Bench, day: Day) -> None:
    keys = bench.found.pop("keys")
    found = {}
    for kind, number in ((Kind.DEAD, day.letters), (Kind.SAMPLES, day.samples)):
        bench.say(f"reading {kind}")
        found[str(kind)] = {
            "loop": [reading.loop(bench.url, keys[kind]) for _ in range(bench.rounds)],
            "one core": reading.by_spark(bench.url, 1, kind, number, bench.rounds),
            "two cores": reading.by_spark(bench.url, 2, kind, number, bench.rounds),
        }
    bench.found["reading"] = found


def run_jobs(bench: Bench) -> Path:
    """The output of one."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(bench.rounds):
        for master in ("local[2]", "local[1]")[:: 1 if number % 2 else -1]:
            bench.say(f"the job, {master}")
            job = bench.job(master)
            found.setdefault(master, []).append(asdict(job.begin().end()))
    bench.found["job"] = found
    return job.output


def ask(bench: Bench, output: Path) -> None:
    """Of the first hours, of more of them, and of all."""
    files = sorted((output / "archive" / "dead").rglob("*.parquet"))
    found = []
    for part in (1, max(1, len(files) // 6), len(files)):
        bench.say(f"{part} of {len(files)} files of the archive")
        told = others.seconds(files[:part], 2, bench.rounds)
        found.append({"files": part, "letters": _rows(files[:part]), "seconds": told})
    bench.found["asked"] = found


def _rows(files: list[Path]) -> int:
    return sum(pq.read_metadata(each).num_rows for each in files)


def look_at_edge(bench: Bench) -> None:
    found = {}
    bench.edge.start()
    for name, nice in (("as it is", ()), ("with what others leave", ("chrt", "--idle", "0"))):
        bench.say(f"an edge beside the job, {name}")
        seen = noticed(bench.edge, bench.generator, lambda nice=nice: bench.job("local[2]", nice), LOOKS)
        found[name] = {**asdict(seen), "ratio": seen.ratio}
    bench.found["edge"] = found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="dead letters, and as many samples")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", action="append", choices=["read", "job", "edge"])
    options = parser.parse_args()
    wanted = options.only or ["read", "job", "edge"]
    console = Console()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers have what this process has
    os.environ["PENSTOCK_EDGES__TMQ__STORE__SAMPLES_KEPT"] = str(100_000_000)  # the edge trims none of ours
    with workshop() as place:
        generator = Generator.build(place.folder)
        store = Store(place)
        bench = Bench(place, store, Tmq(place, store), generator, console.log, options.rounds)
        bench.say("filling the store")
        day = fill(bench, options.records)
        if "read" in wanted:
            read(bench, day)
        if "job" in wanted:
            ask(bench, run_jobs(bench))
        if "edge" in wanted:
            look_at_edge(bench)
        found = bench.found | {"machine": asdict(describe(place.folder)), "commit": current_commit()}
    (RESULTS / "analytics.json").write_text(json.dumps(found, indent=1, default=str) + "\n", "utf-8")
    show(found, console)


if __name__ == "__main__":
    main()
