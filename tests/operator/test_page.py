"""Test the commands of docs/kubernetes.md, with the namespace from the kubectl context."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import Server, eventually
from tools.kubernetes.programs import find

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
BLOCKS = re.findall(r"^```\n(\$ .*?)^```", PAGE, re.M | re.S)
APPLY, FREE, RELEASE, REDRIVE = BLOCKS  # add new ones to these tests
Type = Callable[[str], str]


@pytest.fixture
def type_in(cluster: Cluster, namespace: str, store: Server, tmp_path: Path) -> Type:
    """Return a function that runs a block in a shell, which must succeed, and returns its output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(find("kubectl"))
    penstock = programs / "penstock"
    penstock.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m services.cli "$@"\n')
    penstock.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    environment = {
        **cluster.environment,
        "KUBECONFIG": str(kubeconfig),
        "REDIS_URL": store.url,
        "PATH": f"{programs}:{os.environ['PATH']}",
    }

    def run(block: str) -> str:
        words = ["bash", "-euo", "pipefail", "-c", re.sub(r"^\$ ", "", block, flags=re.M)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(f"kubectl config set-context --current --namespace={namespace}")
    return run


def test_page_creates_a_queue(operator: OperatorProgram, type_in: Type, keeper: Keeper) -> None:
    printed = type_in(APPLY)
    assert "queue.penstock.dev/orders created" in printed
    assert re.search(r"queue.penstock.dev/orders +True +Declared +0", printed)
    found = keeper.find("orders")
    assert found is not None
    assert (found.spec.max_length, found.spec.bindings.rqp_mca.queue_id) == (100_000, 7)


def test_page_redrives_letters(operator: OperatorProgram, type_in: Type, keeper: Keeper, seen: Seen) -> None:
    """Check the page's Redrive, whose filter selects letters older than ten minutes: none here."""
    type_in(APPLY)
    keeper.kill("orders", 3, "max_deliveries")
    printed = type_in(REDRIVE)
    assert re.search(r"orders-after-the-fix +True +Complete +0 +0 +0", printed)
    assert len(keeper.dead("orders")) == 3


def test_page_removes_a_finalizer(new_operator: NewOperator, type_in: Type, seen: Seen) -> None:
    """Check that the page's command removes a finalizer when no operator is left."""
    operator = new_operator().ready()
    seen.declared(queue("orders", deletionPolicy="Delete"))
    operator.kill()
    seen.delete("queue", "orders", patience_s=0)
    assert "queue.penstock.dev/orders patched" in type_in(FREE)
    eventually(lambda: not seen.cluster.items("queues", seen.namespace))


def test_page_releases_orphans(new_operator: NewOperator, type_in: Type, seen: Seen, keeper: Keeper) -> None:
    """Check that the page's command releases queues of an operator in another cluster or a deleted namespace."""
    new_operator(sweep_s=1).ready()
    keeper.declare("orders", owner="kubernetes elsewhere/orders")
    keeper.put("orders", b"one")
    keeper.apply_peer("shop", "kubernetes elsewhere/shop", protocol="rqp-mca", addresses=["10.0.0.1"])
    seen.apply(queue("orders"), peer("shop"))
    for kind, name in (("queue", "orders"), ("peer", "shop")):
        seen.becomes(kind, name, "False", "Conflict")
    assert "released orders, which belonged to kubernetes elsewhere/orders" in type_in(RELEASE)
    for kind, name in (("queue", "orders"), ("peer", "shop")):
        seen.becomes(kind, name, "True", "Declared")
    assert keeper.take("orders") == [b"one"]
