"""Check the commands of runbooks: each is sorted as read-only or not, and read-only commands run without a cluster.

tests/e2e/test_release.py runs all of them on a node, with pods.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.chart import NAME, NAMESPACE, RELEASE, nested, render
from tests.cli.shell import Shell
from tests.docs.blocks import blocks
from tests.docs.runbook_commands import DIAGNOSIS, NAMES, OTHERS, PAGES, commands, diagnosis_commands, filled
from tests.docs.typed import complaint
from tests.operator.keeper import Keeper
from tests.servers import PROGRAMS, Server

FILLED = {
    "NAMESPACE": NAMESPACE,
    "RELEASE": RELEASE,
    "<name>": NAME,
    "EDGE": "tmq",
    "POD": f"{NAME}-tmq-0",
    "QUEUE": "orders",
}
INDEX = "docs/runbooks/index.md"
LINES = [line for block in blocks(INDEX) for line in block.text.splitlines()]
IN_A_POD = re.compile(r"penstock (?:dead|queue|log|ring|doctor|store|report)\b|redis-cli")
WITHOUT = {  # messages about a store that no edge has used
    "report": "no report yet",
    "log show": "no text pub/sub server has used this store yet",
    "ring status": "no node of any ring uses this store",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_runbook_links_to_the_pods_and_names_existing_objects(page: Path) -> None:
    text = page.read_text()
    assert bool(IN_A_POD.search(text)) == ("(../chart.md#commands-in-a-cluster)" in text)
    there = {place.partition("/")[2] for place in render(nested("console", {"enabled": True})).objects}
    assert {f"{NAME}-{rest}" for rest in re.findall(r"<name>-([a-z-]+)", text)} <= there
    assert not re.search(r"(<release>|\bNAME|\bRELEASE)-", text)
    for line in text.splitlines():  # no image has curl (tests/images/test_content.py)
        assert "curl " not in line or ("kubectl port-forward" in line and "curl http://127.0.0.1:" in line)


def test_every_command_is_read_only_or_has_a_reason_not_to_run() -> None:
    for command in commands():
        assert command.startswith((*DIAGNOSIS, *OTHERS)), command
        assert " exec " not in command or command.partition(" -- ")[2].startswith(DIAGNOSIS), command
    for word in (*DIAGNOSIS, *OTHERS):
        assert any(word in command for command in commands()), f"no command contains {word}"
    assert len(diagnosis_commands()) > 25


def test_every_command_is_marked_as_one() -> None:
    """Check that commands are marked as code: unmarked commands would not be checked here."""
    for page in PAGES:
        assert not re.search(r"^- (penstock|kubectl|helm) ", page.read_text(), re.MULTILINE), page


def test_each_name_is_filled_in() -> None:
    for command in diagnosis_commands():
        words = filled(command, FILLED)
        assert not re.search(r"\b[A-Z]{3,}\b|[<>#]", " ".join(words)), words
        assert complaint(words) == "", words
    used = {name for name in NAMES for command in diagnosis_commands() if name in command}
    assert used == set(NAMES)


def test_the_store_of_a_release_gets_more_memory() -> None:
    (line,) = [line for line in LINES if line.startswith("helm upgrade")]
    assert complaint(shlex.split(line)) == ""
    pairs = re.findall(r"--set (\S+?)=(\S+)", line)
    rendered = render(*(nested(path, value) for path, value in pairs))
    assert rendered.container(f"StatefulSet/{NAME}-redis")["resources"]["limits"]["memory"] == "3Gi"
    assert "maxmemory 2gb" in yaml.safe_dump(rendered.of("ConfigMap"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    yield server
    server.end()


def test_penstock_takes_them(tmp_path: Path, store: Server) -> None:
    """Check that `penstock` accepts the commands, on a store with an empty queue."""
    Keeper(store).declare("orders")
    shell = Shell(tmp_path, {"REDIS_URL": store.url})
    for command in diagnosis_commands():
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
    here = [
        line.replace("-h HOST", f"-h 127.0.0.1 -p {store.port}").replace("ADMIN", "default") for line in asks
    ]
    own = {**os.environ, "REDISCLI_AUTH": "any"}  # the user has no password here
    ended = [subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=own) for line in here]
    assert [(each.returncode, each.stderr) for each in ended] == [(0, ""), (0, "")]
    names = [line.partition(":")[0] for line in ended[0].stdout.splitlines()]
    assert names == ["used_memory", "total_system_memory", "maxmemory"]
    assert store.info("memory")["maxmemory"] == str(6 << 30)
