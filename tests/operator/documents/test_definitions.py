"""Test CRDs that are created or deleted while the operator runs (docs/kubernetes.md, "Failures")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.cluster.resources import Kind

from tests.declared_needs import declared_needs
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.definitions import define, definitions, forget
from tests.operator.inside import access
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, queue
from tests.operator.rights import rights
from tests.servers import Server, eventually

MISSING = (
    "definitions: the CRDs of queues, peers, redrives in penstock.dev/v1alpha1 are missing: "
    "apply the CRDs (crds.enabled)\n"
)
NewProgram = Callable[..., OperatorProgram]


@pytest.fixture
def new_program(cluster: Cluster, namespace: str, store: Server, tmp_path: Path) -> Iterator[NewProgram]:
    """Yield a function that starts operators, which may end by themselves."""
    made: list[OperatorProgram] = []

    def start(cluster: Cluster = cluster, **settings: object) -> OperatorProgram:
        made.append(OperatorProgram(cluster, store.url, tmp_path, namespaces=namespace, **settings))
        return made[-1].start()

    yield start
    for program in made:
        program.kill()
    forget(cluster)


def test_operator_can_be_stopped_while_waiting_for_crds(new_program: NewProgram) -> None:
    program = new_program()
    eventually(lambda: program.events("definitions_missing"))
    assert program.stop() == 0


def test_deleted_crds_end_the_operator(
    new_program: NewProgram, cluster: Cluster, namespace: str, keeper: Keeper
) -> None:
    """Check that deleted CRDs end the operator, and that the next one waits for them."""
    define(cluster)
    first = new_program().ready()
    forget(cluster)
    assert first.ended() == 1
    (lines,) = [line for line in first.text().splitlines() if line.startswith("penstock: ")]
    assert lines.startswith("penstock: the watches ended: the CRDs of ")
    assert lines.endswith(" in penstock.dev/v1alpha1 are missing: apply the CRDs (crds.enabled)")
    second = new_program()
    eventually(lambda: second.page("readyz") == (503, MISSING))


def test_crds_of_another_version(
    new_program: NewProgram, cluster: Cluster, namespace: str, keeper: Keeper
) -> None:
    """Check that the operator recovers without a restart from CRDs that default a field which it does not know."""
    define(cluster)
    known = definitions()["queues.penstock.dev"]["spec"]["versions"]
    other = deepcopy(known)
    fields = other[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["newField"] = {"type": "string", "default": "x"}
    cluster.patch("crd", "queues.penstock.dev", {"spec": {"versions": other}})
    seen = Seen(cluster, namespace)

    def is_filled_in() -> bool:
        seen.apply(queue("orders", maxLength=5))
        return "newField" in seen.get("queue", "orders")["spec"]

    eventually(is_filled_in)
    new_program(sweep_s=1).ready()
    found = seen.becomes("queue", "orders", "False", "Invalid")
    assert found["message"] == (
        "spec.newField: unknown field: remove it; if you did not write it, the CRDs and the operator are of different "
        "versions: upgrade the older one"
    )
    cluster.patch("crd", "queues.penstock.dev", {"spec": {"versions": known}})
    seen.becomes("queue", "orders", "True", "Declared")


async def test_missing_crds_are_reported(cluster: Cluster) -> None:
    """Check that missing CRDs are reported: the API server answers with a line of text."""
    api = Api(lambda: access(cluster))
    try:
        with pytest.raises(ApiError) as refused:
            [each async for each in api.list(Kind.QUEUE)]
        assert refused.value.status == 404
        assert str(refused.value) == (
            "the API server answered 404: 404 page not found; apply the CRDs (crds.enabled)"
        )
        with pytest.raises(ApiError) as lost:
            await api.call("GET", "/missing")
        assert lost.value.status == 404
        assert "CRDs" not in str(lost.value)
    finally:
        await api.close()


def test_missing_crds_rights_or_store_make_it_unready(
    new_program: NewProgram, api_server: ApiServer, cluster: Cluster, namespace: str, store: Server
) -> None:
    """Check that the operator is unready while CRDs, rights or the store are missing, in any order and repeatedly."""
    started = new_program(cluster=api_server.as_user("developer"))
    met: set[str] = set()

    def lacks(need: str, why: str) -> None:
        met.add(need)
        eventually(partial(started.page, "readyz"), until=lambda page: is_unmet(page, need, why))
        assert started.page("healthz")[0] == 200

    lacks("definitions", "the CRDs of queues")
    define(cluster)
    lacks("resources", f"queues of {namespace} cannot be listed")
    seen = Seen(cluster, namespace)
    seen.apply(queue("orders", deletionPolicy="Delete"), *rights("developer"))
    seen.becomes("queue", "orders", "True", "Declared")
    started.ready()
    store.kill9()
    lacks("store", "the store cannot be used now")
    store.restart()
    started.ready()
    seen.delete("queue", "orders", 30)
    assert met == declared_needs()["operator/penstock_operator/run.py"]


def is_unmet(page: tuple[int, str], need: str, why: str) -> bool:
    return page[0] == 503 and page[1].startswith(f"{need}: ") and why in page[1]
