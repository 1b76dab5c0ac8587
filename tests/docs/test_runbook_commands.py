"""Commands of runbooks: sorted into those that look and others, and the former run as far as that goes without a node;
and how the store gets more memory.

On a node, where pods run, tests/e2e/test_release.py runs them all.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import CHART, NAME, NAMESPACE, RELEASE, pod_of, render
from tests.chart.console import CONSOLE
from tests.chart.release import Release
from tests.cli.shell import Shell
from tests.docs.blocks import blocks
from tests.docs.runbook_commands import LOOKS, NAMES, OTHERS, PAGES, commands, filled, looks
from tests.kubernetes.cluster import DEFINITIONS, Cluster, CommandFailed
from tests.operator.keeper import Keeper
from tests.operator.resource_documents import queue
from tests.servers import PROGRAMS, Server

POD = f"{NAME}-tmq-0"
FILLED = {
    "NAMESPACE": NAMESPACE,
    "RELEASE": RELEASE,
    "<name>": NAME,
    "EDGE": "tmq",
    "POD": POD,
    "QUEUE": "orders",
}
INDEX = "docs/runbooks/index.md"
LINES = [line for block in blocks(INDEX) for line in block.text.splitlines()]
STORE = {"redis": {"enabled": False}, "externalRedis": {"url": "redis://edge:e@store:6379/0"}}
NOT_ON_A_NODE = "does not have a host assigned"  # a pod was found, and is no more than a document
WITHOUT = {  # what is said of a store that no edge has used
    "report": "no report yet",
    "log show": "no text pub/sub server has used this store yet",
    "ring status": "no node of any ring has told this store of itself",
}
NOTHING_THERE = ("get events", "component=analytics")


@pytest.fixture
def made(cluster: Cluster, new_namespace: Any) -> Iterator[Release]:
    """With a pod of each workload, which nobody starts."""
    released = Release(cluster, new_namespace())
    released.install(CONSOLE, STORE)
    pods = [pod(each) for each in render(CONSOLE, STORE).of("Deployment", "StatefulSet")]
    cluster.apply([*pods, queue("orders")], "--namespace", released.namespace)
    yield released
    cluster.kubectl("delete", "queues", "--all", "--namespace", released.namespace)
    cluster.helm("uninstall", RELEASE, "--namespace", released.namespace, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def pod(workload: Any) -> Any:
    template = pod_of(workload)
    name = f"{workload['metadata']['name']}-0"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **template,
        "metadata": {**template["metadata"], "name": name},
    }


def test_every_command_looks_or_is_told_why_it_is_not_run() -> None:
    for command in commands():
        assert command.startswith((*LOOKS, *OTHERS)), command
        assert " exec " not in command or command.partition(" -- ")[2].startswith(LOOKS), command
    for word in (*LOOKS, *OTHERS):
        assert any(word in command for command in commands()), f"nothing begins with {word}"
    assert len(looks()) > 25


def test_every_command_is_marked_as_one() -> None:
    """Or nobody would look at it here."""
    for page in PAGES:
        assert not re.search(r"^- (penstock|kubectl|helm) ", page.read_text(), re.MULTILINE), page


def test_each_name_is_filled_in() -> None:
    for command in looks():
        words = " ".join(filled(command, FILLED))
        assert not re.search(r"\b[A-Z]{3,}\b|[<>#]", words), words
    used = {name for name in NAMES for command in looks() if name in command}
    assert used == set(NAMES)


def test_kubectl_takes_them_and_the_store_gets_more_memory(made: Release) -> None:
    """What they ask for is there: pods by their labels, objects by their names."""
    names = {**FILLED, "NAMESPACE": made.namespace}
    for command in looks():
        words = filled(command, names)
        told = ask(made.cluster, words)
        if (
            words[1] == "logs"
        ):  # of pods that nobody has started it says nothing, but of those that are not there
            if "-l" not in words:
                continue
            told = made.cluster.kubectl("get", "pods", *words[2:4], "-l", words[words.index("-l") + 1])
        assert (NOT_ON_A_NODE in told) == (words[1] == "exec"), (command, told)
        assert bool(told) != any(part in command for part in NOTHING_THERE), (command, told)
    (upgrade,) = [line for line in LINES if line.startswith("helm upgrade")]
    given = {"RELEASE": RELEASE, "CHART": str(CHART), "NAMESPACE": made.namespace}
    own = ["--set", "redis.enabled=true", "--set", "externalRedis.url="]
    made.cluster.helm(*[given.get(word, word) for word in shlex.split(upgrade)][1:], *own)
    limit = "{.items[*].spec.template.spec.containers[?(@.name=='redis')].resources.limits.memory}"
    stores = ("get", "statefulsets", "--namespace", made.namespace, "-o", f"jsonpath={limit}")
    assert made.cluster.kubectl(*stores).split() == ["3Gi"]
    configs = ("get", "configmaps", "--namespace", made.namespace, "-o", "yaml")
    assert "maxmemory 2gb" in made.cluster.kubectl(*configs)


def ask(cluster: Cluster, words: list[str]) -> str:
    """What is said, be it for want of a node that it failed. Raises CommandFailed for anything else."""
    program, *rest = words
    try:
        return {"kubectl": cluster.kubectl, "helm": cluster.helm}[program](*rest)
    except CommandFailed as error:
        if NOT_ON_A_NODE not in error.said:
            raise
        return error.said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    yield server
    server.end()


def test_penstock_takes_them(tmp_path: Path, store: Server) -> None:
    """On a store with that queue, and nothing in it."""
    Keeper(store).declare("orders")
    shell = Shell(tmp_path, {"REDIS_URL": store.url})
    for command in looks():
        words = filled(command, FILLED)
        if "exec" not in words:
            continue
        program, *rest = words[words.index("--") + 1 :]
        assert program == "penstock"
        why = WITHOUT.get(" ".join(rest), "")
        result = shell.run(*rest, code=4 if why else 0)
        assert why in result.err, (command, result)
        assert rest != ["queue", "list"] or b"orders" in result.out


def test_a_server_of_your_own_gets_more_memory(store: Server) -> None:
    asks = [line for line in LINES if line.startswith("redis-cli")]
    here = [line.replace("-h HOST", f"-h 127.0.0.1 -p {store.port}") for line in asks]
    told = [subprocess.run(["sh", "-c", line], capture_output=True, text=True) for line in here]
    assert [(each.returncode, each.stderr) for each in told] == [(0, ""), (0, "")]
    names = [line.partition(":")[0] for line in told[0].stdout.splitlines()]
    assert names == ["used_memory", "total_system_memory", "maxmemory"]
    assert store.info("memory")["maxmemory"] == str(6 << 30)
