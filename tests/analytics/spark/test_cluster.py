"""Run the job on a cluster: domains on two shards, catalogue and report perhaps on a third."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.analytics import job, preflight
from services.analytics.settings import Settings
from services.store.model.keys import DomainKeys, RegistryKeys
from tests.analytics.spark.carried_out import named, rows
from tests.redis_stream.streams import QUEUE, add, with_desk
from tests.servers import PROGRAMS
from tests.store.desk import Desk, numbered
from tests.topologies import Cluster

LETTERS = 7  # letters of each domain before each run


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(next(iter(PROGRAMS)), tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


async def declare(desk: Desk, domains: list[str]) -> None:
    for name in domains:
        await desk.queue(f"of {name}", domain=name, ack_level="memory")


async def let_die(desk: Desk, domains: list[str]) -> list[tuple[str, str]]:
    """Return the ids of all dead letters, by queue."""
    found = []
    for name in domains:
        queue = await desk.store.catalogue.find(f"of {name}")
        async with desk.another(domain=name) as own:
            await own.put(queue, *numbered(LETTERS))
            await own.reject(await own.take(queue))
            found += [(queue.name, letter.id) async for letter in own.dead(queue).matching()]
    return sorted(found)


def test_a_job_reads_all_shards_and_goes_on_there(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    registry = RegistryKeys().report
    shards = [node for node in cluster.nodes if node is not cluster.holder(registry)]
    domains = [cluster.domain_on(node) for node in shards]
    output = tmp_path / "out"
    with_desk(cluster.url, lambda desk: declare(desk, domains))
    for number in (1, 2):
        letters = with_desk(cluster.url, lambda desk: let_die(desk, domains))
        assert len(letters) == number * LETTERS * len(domains)
        for node, name in zip(shards, domains, strict=True):
            add(node, [("*", {**QUEUE, "queue": f"of {name}", "n": str(number)})], DomainKeys(name).samples)
        settings = Settings(cluster.url, str(output), f"r{number}", patience_s=10)
        job.run(settings, preflight.look(settings), lambda: spark)
        (run,) = [each for each in rows(output, "runs") if each["run"] == f"r{number}"]
        assert (run["dead"], run["dead_quarantined"], run["dead_gone"]) == (LETTERS * 2, 0, 0)
        assert run["samples"] >= len(domains)
        assert named(rows(output, "bronze/dead")) == letters
    assert summed(output, "gold/deaths", "count") == dict.fromkeys(domains, 2 * LETTERS)
    assert summed(output, "gold/traffic", "in") == dict.fromkeys(domains, 2 * int(QUEUE["in"]))
    given = cluster.holder(registry).call("GET", registry).partition(b" ")[2]
    assert given == (output / "reports/latest.json").read_bytes()
    assert {each["domain"] for each in json.loads(given)["queues"]} >= {*domains}


def summed(output: Path, table: str, column: str) -> dict[str, int]:
    """Return the sum of a column, by domain."""
    found: dict[str, int] = {}
    for row in rows(output, table):
        found[row["domain"]] = found.get(row["domain"], 0) + row[column]
    return found
