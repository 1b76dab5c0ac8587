"""Test `uninstall`: it ends in any outage and respects Retain (docs/chart.md, "Uninstall")."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any

import pytest
from penstock_operator.cluster.api import Access, Api
from penstock_operator.cluster.resources import Kind
from penstock_operator.uninstall_finalizers import FinalizerRelease

from tests.kubernetes.cluster import Cluster
from tests.operator.conftest import NewOperator
from tests.operator.inside import access
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.queues.test_removing import FINALIZER, declared
from tests.operator.resource_documents import Seen, queue
from tests.servers import Server, eventually

RELEASE = {"meta.helm.sh/release-name": "penstock", "meta.helm.sh/release-namespace": ""}


def deployment() -> dict[str, Any]:
    labels = {"app": "operator"}
    containers = [{"name": "operator", "image": "none"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "operator"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def replicas(seen: Seen, number: int) -> None:
    seen.cluster.patch("deployment", "operator", {"status": {"replicas": number}}, seen.namespace, "status")


@contextmanager
def controlled(program: OperatorProgram, seen: Seen) -> Iterator[None]:
    """Act as the cluster's controllers: the operator runs until its Deployment has no replicas."""
    seen.apply(deployment())
    replicas(seen, 1)

    def control() -> None:
        eventually(lambda: seen.get("deployment", "operator")["spec"]["replicas"] == 0, 60)
        program.kill()
        replicas(seen, 0)

    controller = Thread(target=control)
    controller.start()
    yield
    controller.join()


def uninstall(program: OperatorProgram, seen: Seen, timeout_s: float = 20) -> str:
    """Run `uninstall` as the hook's Job does, and return its log."""
    words = ["--release", "penstock", "--namespace", seen.namespace, "--deployment", "operator"]
    status, given = program.command("uninstall", *words, "--timeout", str(timeout_s))
    assert status == 0, given
    return given


def of_the_release(seen: Seen, name: str, policy: str) -> dict[str, Any]:
    document = queue(name, deletionPolicy=policy)
    notes = {**RELEASE, "meta.helm.sh/release-namespace": seen.namespace}
    return {**document, "metadata": {**document["metadata"], "annotations": notes}}


def test_own_resources_are_deleted_and_others_stay(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    seen.apply(of_the_release(seen, "own", "Delete"), of_the_release(seen, "kept-own", "Retain"))
    for name in ("own", "kept-own"):
        seen.becomes("queue", name, "True", "Declared")
    declared(seen, "theirs", "Delete")
    keeper.put("theirs", b"one")
    with controlled(operator, seen):
        uninstall(operator, seen)
    assert [one["metadata"]["name"] for one in seen.cluster.items("queues", seen.namespace)] == ["theirs"]
    found = seen.becomes("queue", "theirs", "Unknown", "NoOperator", 5)
    assert "the operator was uninstalled" in found["message"]
    assert seen.get("queue", "theirs")["status"]["ackLevel"] == "fsync"
    owner = f"released kubernetes {seen.namespace}/kept-own"
    assert (keeper.find("own"), keeper.owner("kept-own")) == (None, owner)
    seen.delete("queue", "theirs", 5)  # no finalizer is left
    assert keeper.take("theirs") == [b"one"]


def test_deletions_in_progress_are_waited_for(
    new_operator: NewOperator, seen: Seen, keeper: Keeper, store: Server
) -> None:
    operator = new_operator().ready()
    declared(seen, "orders", "Delete")
    store.kill9()
    seen.delete("queue", "orders", patience_s=0)
    with controlled(operator, seen):
        hook = Thread(target=uninstall, args=(operator, seen, 30))
        hook.start()
        store.start()
        hook.join()
    assert seen.cluster.items("queues", seen.namespace) == []
    assert keeper.find("orders") is None


def test_without_store_and_operator_nothing_hangs(
    new_operator: NewOperator, seen: Seen, store: Server
) -> None:
    operator = new_operator().ready()
    seen.apply(deployment())
    declared(seen, "orders", "Delete")
    store.kill9()
    operator.kill()
    seen.delete("queue", "orders", patience_s=0)
    began = time.monotonic()
    given = uninstall(operator, seen, 3)
    assert time.monotonic() - began < 20
    assert "orders was removed; its queue stays" in given
    eventually(lambda: seen.cluster.items("queues", seen.namespace) == [])


def test_uninstall_ends_whatever_is_missing(new_operator: NewOperator, seen: Seen, store: Server) -> None:
    """Check that finalizers are removed without a Deployment or the right to stop it."""
    operator = new_operator().ready()
    declared(seen, "orders", "Delete")
    operator.kill()
    assert "a step of the uninstallation failed" in uninstall(operator, seen, 3)
    assert not seen.get("queue", "orders")["metadata"].get("finalizers")


def test_operator_in_a_deleted_namespace_removes_finalizers(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    """Check that finalizers are removed in a deleted namespace, whose pods end first (docs/chart.md, "Uninstall")."""
    operator = new_operator().ready()
    declared(seen, "orders", "Delete")
    assert operator.stop() == 0
    assert seen.get("queue", "orders")["metadata"]["finalizers"]  # the operator may return in a moment
    operator.start().ready()
    seen.cluster.delete("namespace", seen.namespace, patience_s=0)
    assert operator.stop() == 0
    assert not seen.get("queue", "orders")["metadata"].get("finalizers")
    assert keeper.owner("orders") == f"kubernetes {seen.namespace}/orders"


def test_finalizers_of_others_stay(new_operator: NewOperator, seen: Seen, store: Server) -> None:
    operator = new_operator().ready()
    seen.apply(queue("orders"))
    operator.kill()
    seen.finalizers("queue", "orders", "example.org/first", FINALIZER, "example.org/last")
    uninstall(operator, seen, 3)
    assert seen.get("queue", "orders")["metadata"]["finalizers"] == ["example.org/first", "example.org/last"]


class Overtaken(Api):
    """A client whose lists are outdated before they are used."""

    def __init__(self, log_in: Callable[[], Access], meanwhile: list[Callable[[], None]]) -> None:
        super().__init__(log_in)
        self._meanwhile = meanwhile

    async def list(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        found = [body async for body in super().list(kind, namespace, selector)]
        if found and self._meanwhile:
            self._meanwhile.pop(0)()
        for body in found:
            yield body


@pytest.mark.usefixtures("new_operator")  # remove what a failed test leaves
async def test_finalizers_changed_meanwhile(defined: Cluster, seen: Seen) -> None:
    """Check that only the operator's finalizer is removed, at its current index, with any outdated list."""
    seen.apply(queue("orders"))
    seen.finalizers("queue", "orders", FINALIZER)
    added = partial(seen.finalizers, "queue", "orders", "example.org/first", FINALIZER)
    api = Overtaken(lambda: access(defined), [added])
    await FinalizerRelease(api, (seen.namespace,)).take_finalizers_off()
    await api.close()
    assert seen.get("queue", "orders")["metadata"]["finalizers"] == ["example.org/first"]
