"""Test restored documents, which contain kopf's annotations, so that kopf sees no change.

The tests end before the full pass, which comes after a minute (docs/kubernetes.md, "Drift").
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from penstock_operator.control import Control
from penstock_operator.settings import OperatorSettings

from services.store import Store
from tests.operator.conftest import NewOperator
from tests.operator.inside import Inside, read
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import eventually

PATIENCE_S = 5.0
REMEMBERED = "penstock.dev/last-handled"


@pytest.fixture
def seldom(new_operator: NewOperator) -> OperatorProgram:
    return new_operator(sweep_s=60).ready()


def remembered(seen: Seen, kind: str, name: str) -> str:
    annotations = seen.get(kind, name)["metadata"].get("annotations", {})
    return str(annotations.get(REMEMBERED, ""))


def settled(seen: Seen, document: dict[str, Any], *, unlike: str = "") -> str:
    """Apply a document, and return kopf's annotations after it was reconciled."""
    kind, name = document["kind"].lower(), document["metadata"]["name"]
    seen.apply(document)
    seen.becomes(kind, name, "True", "Declared")
    eventually(lambda: remembered(seen, kind, name) not in ("", unlike))
    return remembered(seen, kind, name)


def saved(seen: Seen, kind: str, name: str) -> str:
    """Return an object as `kubectl get --output json` writes it, without its version."""
    found = seen.get(kind, name)
    del found["metadata"]["resourceVersion"]
    return json.dumps(found)


def test_queue_replaced_by_a_saved_document(seldom: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    first = settled(seen, queue("orders", maxLength=5))
    document = saved(seen, "queue", "orders")
    settled(seen, queue("orders", maxLength=9), unlike=first)
    seen.cluster.kubectl("replace", "--namespace", seen.namespace, "--filename", "-", given=document)
    seen.becomes("queue", "orders", "True", "Declared", PATIENCE_S)
    assert keeper.spec("orders").max_length == 5


def test_peer_replaced_by_a_saved_document(seldom: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    first = settled(seen, peer("shop", "rqp-mca", "10.0.0.1"))
    document = saved(seen, "peer", "shop")
    settled(seen, peer("shop", "rqp-mca", "10.0.0.2"), unlike=first)
    seen.cluster.kubectl("apply", "--namespace", seen.namespace, "--filename", "-", given=document)
    seen.becomes("peer", "shop", "True", "Declared", PATIENCE_S)
    assert keeper.peers()["shop"][1] == ("10.0.0.1",)


async def test_document_changed_and_changed_back(inside: Inside, seen: Seen) -> None:
    """Check a document that is changed and changed back before kopf has written its annotation for the first change."""
    seen.apply(queue("orders", maxLength=5))
    first = read(seen, "queue", "orders")
    control = Control(
        OperatorSettings(namespaces=seen.namespace),
        Store("redis://127.0.0.1:1/0", "operator"),
        inside.api,
        inside.metrics,
    )
    control.on_change(first)
    control.work.forget(first.key)  # it is reconciled
    control.on_event(replace(first, version=first.version + 1, status={"observedGeneration": 1}))
    assert control.work.depth == 0
    control.on_event(replace(first, version=first.version + 2, generation=first.generation + 2))
    assert control.work.depth == 1
