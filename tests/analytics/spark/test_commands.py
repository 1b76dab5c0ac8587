"""Test the commands of docs/analytics.md with spark-submit, and the report in docs/cli.md."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from services.store import Store
from services.store.model.keys import DomainKeys
from tests.analytics.spark.test_kills import PATIENCE_S, environment
from tests.cli.shell import Shell, running
from tests.docs.bench import parse_command
from tests.docs.blocks import blocks
from tests.redis_stream.spark.session import ROOT
from tests.servers import eventually, free_port

ANALYTICS, CLI = "docs/analytics.md", "docs/cli.md"
SUBMIT = Path(pyspark.__file__).parent / "bin"
TTL_MS = 3000
ACTION = re.compile(r'"action": "(\w+)"')
LABEL = re.compile(r"^((?:[a-z]+ )*[a-z]+)(?:  |$)", re.M)
HEAD = re.compile(r"^(.*)\n─+$", re.M)
SAMPLES = {f"PENSTOCK_EDGES__{edge}__STORE__SAMPLE_S": "1" for edge in ("TMQ", "PUBSUB", "RING", "RQP")}


@dataclass(frozen=True)
class Home:
    """A system in which 3,000 of 4,000 messages expired after three seconds, as in docs/cli.md."""

    shell: Shell
    store: str

    def run(self, line: str, folder: Path) -> str:
        """Run a command that must succeed, and return its outputs."""
        known = environment() | {"PATH": f"{SUBMIT}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
        own = {"STORE": self.store, "OUTPUT": str(self.shell.folder / "submitted")}
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=known | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    shell, port = Shell(tmp_path_factory.mktemp("home"), SAMPLES), free_port()
    with running(shell, "--store-port", str(port)):
        shell.run("queue", "create", "orders", "--message-ttl", "3s")
        shell.run("queue", "create", "invoices")
        for queue, number in (("orders", 3000), ("invoices", 1000)):
            shell.run("put", queue, "--lines", stdin=b"a pump\n" * number)
        eventually(lambda: shell.stats("orders")["oldest_age_ms"] > TTL_MS)
        shell.run("get", "orders", code=4)  # a get expires them before the next sweep does
        eventually(lambda: shell.stats("orders")["dead"] == 3000)
        eventually(lambda: {b"orders", b"invoices"} <= sampled(shell))
        yield Home(shell, f"redis://127.0.0.1:{port}")


def sampled(shell: Shell) -> set[bytes]:
    """Return all values in samples, including names of queues."""

    async def read(store: Store) -> set[bytes]:
        entries = await store.registry.link.call("XRANGE", DomainKeys("main").samples, "-", "+")
        return {value for _, fields in entries for value in fields}

    return shell.with_store(read)


def shown(page: str, section: str) -> tuple[str, str]:
    (block,) = [each for each in blocks(page) if each.section == section and each.is_command]
    command = parse_command(block.text.removeprefix("$ "))
    return command.line, command.shown


@pytest.mark.timeout(PATIENCE_S)
def test_the_job_submitted(home: Home, tmp_path: Path) -> None:
    """Check the job in the folder of the project, in which nothing may be left."""
    (tmp_path / "services").symlink_to(ROOT / "services")
    line, wanted = shown(ANALYTICS, "By spark-submit")
    said = iter(ACTION.findall(home.run(line, tmp_path)))
    for action in ACTION.findall(wanted):
        assert action in said, action
    assert (tmp_path / "spark.log").exists()


def test_the_report(home: Home) -> None:
    """Check the report of the previous run, except figures and their width."""
    _, wanted = shown(CLI, "report")
    said = home.shell.run("report").text
    assert set(LABEL.findall(wanted)) <= set(LABEL.findall(said))
    assert [each.split() for each in HEAD.findall(wanted)] == [each.split() for each in HEAD.findall(said)]
    for text in (wanted, said):
        assert re.search(r"^dead letters read +3,000: expired 3,000$", text, re.M)
