"""Test commands on a Redis Cluster with one unreachable shard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.store.model.keys import RegistryKeys
from tests.cli.shell import Shell
from tests.topologies import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster("redis", tmp_path / "cluster").start()
    yield made
    made.end()


def test_queue_list_shows_queues_of_available_shards(alone: Shell, cluster: Cluster) -> None:
    """Check that queues of the unavailable shard are marked and make the command fail."""
    home = cluster.holder(RegistryKeys().epoch)
    away, other = [node for node in cluster.nodes if node is not home]
    lost = cluster.domain_on(away)
    alone.environment["REDIS_URL"] = cluster.url
    alone.run("store", "init")
    for name, node in (("gone1", away), ("gone2", away), ("here", home), ("there", other)):
        alone.run("queue", "create", name, "--ack-level", "memory", "--domain", cluster.domain_on(node))
    away.kill9()

    listed = alone.run("queue", "list", code=3)
    rows = {line.split()[0]: line for line in listed.text.splitlines()[2:]}
    assert sorted(rows) == ["gone1", "gone2", "here", "there"]
    assert [name for name, row in rows.items() if f"domain {lost!r} is unreachable" in row] == [
        "gone1",
        "gone2",
    ]
    assert listed.err.startswith(f"penstock: store_unavailable: 2 queues of domain {lost!r} unreachable: ")
    assert len(listed.err.splitlines()) == 1

    objects = {row["name"]: row for row in alone.run("queue", "list", "--json", code=3).objects}
    assert [("stats" in row, "unreachable" in row) for _, row in sorted(objects.items())] == [
        (False, True),
        (False, True),
        (True, False),
        (True, False),
    ]
    assert objects["gone1"]["domain"] == lost

    only = alone.run("queue", "list", "gone*", code=3)
    assert [line.split()[0] for line in only.text.splitlines()[2:]] == ["gone1", "gone2"]
    assert "here" in alone.run("queue", "list", "here").text
