"""Test that a restarted operator reports that the store has other data than before.

docs/kubernetes.md, "Failures".
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest
from penstock_operator.cluster.api import Api
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.store import datasets
from penstock_operator.store.datasets import DatasetRecord, Datasets, KnownDataset

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.live import until
from tests.operator.conftest import NewOperator
from tests.operator.inside import Inside, access
from tests.operator.program import OperatorProgram
from tests.operator.rights import granted
from tests.servers import Server, eventually

MAP = "penstock-dataset"
RESTORED = "penstock_operator_store_restored_total"
REPLACED = "penstock_operator_store_replaced_time_seconds"


def kept(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the record of data; {} before the first."""
    found = [each for each in cluster.items("configmaps", namespace) if each["metadata"]["name"] == MAP]
    data: dict[str, str] = (found[0].get("data") or {}) if found else {}
    return data


def test_data_lost_while_the_operator_was_down(
    new_operator: NewOperator, defined: Cluster, namespace: str, store: Server
) -> None:
    """Check that data lost while operator, store and edges restart raise an alarm, which outlasts a later restart."""

    def begun() -> tuple[OperatorProgram, dict[str, str]]:
        program = new_operator(dataset_configmap=MAP).ready()
        (dataset,) = {line["epoch"].partition(".")[0] for line in program.events("store_up")}
        eventually(lambda: kept(defined, namespace).get("dataset") == dataset)
        return program, kept(defined, namespace)

    first, before = begun()
    assert (first.metric(RESTORED), first.metric(REPLACED), before["replaced"]) == (0, 0, "0")
    first.kill()
    store.clear()
    since = int(time.time())
    second, after = begun()
    assert after["dataset"] != before["dataset"]
    (event,) = second.events("store_restored")
    assert (event["old"], event["new"]) == (before["dataset"], after["dataset"])
    assert second.metric(RESTORED) == 1
    assert since <= second.metric(REPLACED) == int(after["replaced"]) <= time.time()
    second.kill()
    third, same = begun()
    eventually(lambda: third.metric(REPLACED) == int(after["replaced"]))
    assert (third.metric(RESTORED), same) == (0, after)


@pytest.mark.parametrize("data", [None, {"dataset": "abc", "replaced": "soon"}, {"replaced": "9" * 400}])
async def test_foreign_content_of_the_record_is_tolerated(
    inside: Inside, defined: Cluster, namespace: str, data: dict[str, str] | None
) -> None:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": MAP},
        "data": data,
    }
    defined.apply([document], "--namespace", namespace)
    memory = DatasetRecord(inside.api, namespace, MAP)
    assert await memory.recall() == KnownDataset((data or {}).get("dataset", ""), 0)
    await memory.keep(KnownDataset("new", 7))
    assert await memory.recall() == KnownDataset("new", 7)


class Counting(DatasetRecord):
    """A record that counts its reads."""

    asked = 0

    async def recall(self) -> KnownDataset:
        self.asked += 1
        return await super().recall()


@pytest.mark.parametrize("before", ["", "z"])
async def test_missing_rights_for_the_record_are_logged_once(
    api_server: ApiServer,
    defined: Cluster,
    namespace: str,
    before: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Check that missing rights are logged once, and a change seen meanwhile is reported, and recorded later."""
    monkeypatch.setattr(datasets, "RETRY_S", 0.05)
    api, metrics = Api(lambda: access(api_server.as_user("developer"))), Metrics()
    if before:
        known: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP}}
        defined.apply([{**known, "data": {"dataset": before}}], "--namespace", namespace)
    memory = Counting(api, namespace, MAP)
    watched = Datasets(memory, metrics, lambda: 42.5)
    running = asyncio.create_task(watched.run())
    try:
        watched.holds("a")
        await until(lambda: memory.asked >= 3)
        watched.holds("b")
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}]
        defined.apply(granted("developer", rules), "--namespace", namespace)
        await until(lambda: kept(defined, namespace) == {"dataset": "b", "replaced": "42"})
    finally:
        running.cancel()
        await api.close()
    assert metrics.registry.get_sample_value(RESTORED) == (2 if before else 1)
    results = [record for record in caplog.records if record.__dict__.get("action") == "dataset_not_kept"]
    assert len(results) == 1
    assert results[0].levelno == logging.WARNING
    assert "forbidden" in results[0].getMessage()
