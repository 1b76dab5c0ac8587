"""Sentinel and Cluster stores, set up by the commands of docs/chart.md, survive two failovers in a row under load."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import replicated_page as page
from tests.e2e.disturbing import kill
from tests.e2e.images import Images
from tests.e2e.node.node import Node
from tests.e2e.release import FULL, NAME, Release
from tests.e2e.released import definitions, released
from tests.e2e.replicated import BelowSentinels, Cluster, Replicated
from tests.e2e.scripted import added, load
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster as Kubernetes
from tests.kubernetes.cluster import CommandFailed
from tests.operator.resource_documents import queue
from tests.servers import eventually

__all__ = ["definitions"]

ROOT = Path(__file__).parents[2]
README_QUEUE = ROOT / "docs" / "examples" / "kubernetes" / "invoices.yaml"
FEW = {edge: {"enabled": False} for edge in ("pubsub", "rqp")}
LOADED = ("tmq", "ring")
PAUSE_S = 60.0  # longest wait of a client in a failover, on a busy machine
FLOW_S = 60.0


@pytest.fixture(scope="module")
def stores(
    cluster: Kubernetes, images: Images, definitions: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Replicated]]:
    """Start one store of each kind in its own namespace, with a release installed by the page's commands."""
    folder = tmp_path_factory.mktemp("failovers")
    with ExitStack() as stack:
        made: list[Replicated] = []
        for kind in (BelowSentinels, Cluster):
            release = stack.enter_context(released(cluster, images))
            made.append(kind(release, folder / kind.__name__))
            made[-1].start()
            if kind is BelowSentinels:
                install(made[-1])
        install(made[-1])
        for store in made:
            with step(f"{type(store).__name__}: every server ready"):
                store.wait()
            give_rights(store)
        for store in made:
            with step(f"{type(store).__name__}: every pod ready"):
                eventually(lambda release=store.release: is_rolled_out(release), 120)
        yield made


def commands(store: Replicated) -> list[list[str]]:
    """Return the page's commands for this kind of store, with names of this release, split at pipes to kubectl."""
    found = []
    for line in page.commands("sentinel" if isinstance(store, BelowSentinels) else "cluster"):
        own = line.replace("--namespace queues", f"--namespace {store.release.namespace}")
        own = own.replace("deploy/penstock-", f"deploy/{FULL}-").replace(
            "helm install penstock", f"helm install {NAME}"
        )
        own = own.replace(" --values docs/examples/chart/images.yaml", "")  # `install` sets the images
        own = own.replace("--from-file=ca.crt", f"--from-file=ca.crt={store.ca}")
        found.append(own.split(" | kubectl ")) if " | kubectl " in own else found.append([own])
    return found


def install(store: Replicated) -> None:
    """Run the commands up to `helm install`, which returns before any pod is ready."""
    for line, *piped in commands(store):
        if piped:
            continue
        program, *words = shlex.split(line)
        if program == "kubectl":
            store.release.cluster.kubectl(*words)
            continue
        words = [str(ROOT / word) if word.endswith((".yaml", "charts/penstock")) else word for word in words]
        store.release.cluster.helm(*words, "--values", "-", given=json.dumps(values(store.release)))


def values(release: Release) -> dict[str, Any]:
    """Return values with the tests' images and only a few edges."""
    found = release.values(replicas=1)
    return {
        **{name: found[name] for name in ("crds", "operator")},
        "edgeDefaults": found["edgeDefaults"],
        "edges": {**FEW, "ring": found["edges"]["ring"]},
    }


def give_rights(store: Replicated) -> None:
    """Run the page's last commands, which grant the edges' rights; edges become ready only afterwards."""
    said = []
    for line, *piped in commands(store):
        if piped:
            given = store.release.cluster.kubectl(*shlex.split(line)[1:])
            words = shlex.split(piped[0])
            run = lambda given=given, words=words: store.release.cluster.kubectl(*words, given=given)  # noqa: E731
            said.append(eventually(lambda run=run: answered(run), 90))
    applied, doctor = said
    servers = [name for name in store.names if "redis" in name]
    assert applied.count("user edge is set, stored in its ACL file") == len(servers), applied
    assert f"the same on {len(servers)} servers" in doctor, doctor


def answered(run: Any) -> str:
    """Return the output of a command. Raise ConnectionError while no pod runs or the store is not set up yet."""
    try:
        return str(run())
    except CommandFailed as error:
        raise ConnectionError(error.said) from None


def is_rolled_out(release: Release) -> bool:
    workloads = [*release.cluster.items("deployments", release.namespace)]
    workloads += release.cluster.items("statefulsets", release.namespace)
    return all(each["status"].get("readyReplicas", 0) == each["spec"]["replicas"] for each in workloads)


@pytest.mark.own_node
def test_two_failovers_in_a_row_lose_nothing(stores: list[Replicated], node: Node) -> None:
    document = yaml.safe_load(README_QUEUE.read_text("utf-8"))
    assert "ackLevel" not in document["spec"]
    for store in stores:
        store.release.apply(document, queue("load"))
        store.release.wait_ready("queues")
        kept = store.release.kubectl("get", "queues", "-o", "jsonpath={.items[*].status.ackLevel}")
        assert kept == "replicated:1 replicated:1"
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        for store in stores:
            results.append(stack.enter_context(load(store.release, "load", *LOADED)))
        for which in ("first", "second"):
            with step(f"the {which} failover of each"):
                before = [store.primary() for store in stores]
                for store, name in zip(stores, before, strict=True):
                    assert kill(store.release, node, store.pod(name))
                    store.is_killed(name)
                for store, name in zip(stores, before, strict=True):
                    eventually(lambda store=store, name=name: store.primary() != name, 90)
                    eventually(lambda store=store, name=name: store.bring_back(name))
                for store in stores:
                    eventually(lambda store=store: is_whole(store), 90)
                flowed = [added(store.release, "load") for store in stores]
                # separates this pause of the clients from the next
                for store, number in zip(stores, flowed, strict=True):
                    eventually(lambda store=store, n=number: added(store.release, "load") > n + 50, FLOW_S)
    for found in results:
        print(found)
        assert found["missing_count"] == 0, found
        assert set(LOADED) <= set(found["acked"])
        assert max(found["longest_gap_s"].values()) < PAUSE_S, found
    for store in stores:
        store.release.wait_ready("queues")


def is_whole(store: Replicated) -> bool:
    """Return whether the killed server follows the primary. Raise ConnectionError while no server answers."""
    return store.number_linked() == (2 if isinstance(store, BelowSentinels) else 1)
