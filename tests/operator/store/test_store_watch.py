"""Test the reports of lost data by the store's watch (docs/kubernetes.md, "Failures")."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.store import store_watch
from penstock_operator.store.datasets import Datasets
from penstock_operator.store.store_watch import StoreWatch

from services.store import Store
from tests.servers import Server, eventually


class Watched:
    """The watch, and its counts."""

    def __init__(self, server: Server) -> None:
        self.metrics = Metrics()
        self.store = Store(server.url, "operator")
        datasets = Datasets(None, self.metrics)
        self.watch = StoreWatch(self.store, lambda: None, datasets.holds, self.metrics, accept_loss=False)

    def is_up(self) -> bool:
        return self._value("penstock_operator_store_up") == 1

    @property
    def restored(self) -> float:
        return self._value("penstock_operator_store_restored_total")

    def _value(self, name: str) -> float:
        found = self.metrics.registry.get_sample_value(name)
        assert found is not None
        return found


@pytest.fixture
async def watched(store: Server) -> AsyncIterator[Watched]:
    made = Watched(store)
    await made.watch.poll()
    assert made.is_up()
    yield made
    await made.store.close()


async def test_new_store_is_no_loss(watched: Watched) -> None:
    await watched.watch.poll()
    assert watched.restored == 0


async def test_store_with_the_same_data_is_no_loss(watched: Watched, store: Server) -> None:
    store.kill9()
    await watched.watch.poll()
    assert not watched.is_up()
    store.restart()
    await watched.watch.poll()
    assert watched.is_up()
    assert watched.restored == 0


async def test_emptied_store_counts(watched: Watched, store: Server) -> None:
    store.clear()
    await watched.watch.poll()
    await watched.watch.poll()
    assert watched.is_up()
    assert watched.restored == 1


async def test_store_empty_after_an_outage_counts(
    watched: Watched, store: Server, caplog: pytest.LogCaptureFixture
) -> None:
    store.kill9()
    await watched.watch.poll()
    assert not watched.is_up()
    shutil.rmtree(store.directory)
    store.restart()
    with caplog.at_level(logging.ERROR):
        await watched.watch.poll()
    await watched.watch.poll()
    assert watched.is_up()
    assert watched.restored == 1
    (records,) = [record for record in caplog.records if record.__dict__.get("action") == "store_restored"]
    assert records.__dict__["old"] != records.__dict__["new"]


async def test_store_set_up_again_by_others_counts(watched: Watched, store: Server) -> None:
    store.kill9()
    await watched.watch.poll()
    shutil.rmtree(store.directory)
    store.restart()
    other = Store(store.url, "test")
    await other.initialise()
    await other.close()
    await watched.watch.poll()
    assert watched.restored == 1


async def test_new_generation_is_no_loss(watched: Watched, store: Server) -> None:
    """Check that a new generation, as after a failover, is not reported as lost data."""
    dataset, _, generation = (await watched.store.registry.epoch()).partition(".")
    store.call("SET", watched.store.registry.keys.epoch, f"{dataset}.{int(generation) + 1}")
    await watched.watch.poll()
    assert watched.restored == 0


@pytest.fixture
def replica(store: Server, tmp_path: Path) -> Iterator[Server]:
    """Yield a server that is not a replica yet."""
    server = Server(store.program, tmp_path / "replica", {"repl-diskless-sync-delay": "0"}).start()
    yield server
    server.end()


def has_replicas(store: Server, number: int) -> bool:
    return int(store.info("replication")["connected_slaves"]) == number


async def test_replica_that_joins_later_raises_the_ack_levels(
    watched: Watched, store: Server, replica: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a replica that joins later raises the acknowledgement levels, as in a Cluster that just started."""
    monkeypatch.setattr(store_watch, "PROMISES_S", 0.0)
    assert "replicated:1" not in (await watched.store.promises.now()).levels()
    replica.call("REPLICAOF", "127.0.0.1", store.port)
    eventually(lambda: has_replicas(store, 1))
    await watched.watch.poll()
    assert "replicated:1" in (await watched.store.promises.now()).levels()
    replica.call("REPLICAOF", "NO", "ONE")
    eventually(lambda: has_replicas(store, 0))
    await watched.watch.poll()
    assert "replicated:1" in (await watched.store.promises.now()).levels()
