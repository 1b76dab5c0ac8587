"""What docs/ring.md shows is run as it stands there, on a port that is free here; and its reasons are all."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from protos.ring import REFUSALS
from services.kit.net.refusals import Refusal
from services.ring.settings import RingSettings
from services.ring.words import REFUSED
from tests.cli.shell import Shell, Up, running
from tests.docs.bench import Bench, commands
from tests.docs.inventory import headings
from tests.docs.test_reasons import said_in, told_in
from tests.ring.clients.test_words import said_by_the_port
from tests.servers import eventually
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

PAGE = (ROOT / "docs/ring.md").read_text()
PORT = "9000"


def test_the_examples(tmp_path: Path) -> None:
    """The line, the program, and the queue that both leave behind."""
    shell = Shell(tmp_path)
    with running(shell) as up:
        command, said = shown_line()
        assert run(["bash", "-c", at_home(command, up)]) == said
        program, printed = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE, re.M | re.S)[0]
        assert run([sys.executable, "-c", at_home(program, up)]) == printed
        shell.run("put", "orders", "from the command line")
        owners = {each["name"]: each["owner"] for each in shell.run("queue", "list", "--json").objects}
        assert owners == {"hello": "edge:ring", "orders": "edge:ring"}
        (own,) = shell.run("queue", "list", "ring/*", "--json").objects  # the node's, as docs/cli.md says
        assert own["name"].startswith("ring/1/127.0.0.1:")


def shown_line() -> tuple[str, str]:
    ((command, said),) = re.findall(
        r"^\$ (bash -c .*)\n((?:.*\n)*?)```", PAGE.partition("\n## Try it\n")[2], re.M
    )
    return command, said


def test_up_shows_the_same_line(tmp_path: Path) -> None:
    """docs/ring.md, README.md, docs/cli.md"""
    command, _ = shown_line()
    for page in ("README.md", "docs/cli.md"):
        assert f"    {command}\n" in (ROOT / page).read_text()
    shell = Shell(tmp_path, {"PENSTOCK_EDGES__RING__LISTENERS__CLIENTS__PORT": "0"})
    with shell.terminal("up") as terminal:
        eventually(lambda: terminal.sees("ready; Ctrl-C"))
        (place,) = re.findall(r"ring clients: 127\.0\.0\.1:(\d+)", terminal.screen.decode())
        assert terminal.sees(command.replace(PORT, place))
        terminal.type("\x03")
        assert terminal.end() == 0


def at_home(text: str, up: Up) -> str:
    """With the port that is free here."""
    assert PORT in text
    return text.replace(PORT, str(up.told["edges"]["ring"]["listeners"]["clients"]["port"]))


def run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """On a network where nobody has the ports that the page names."""
    with own_machine():
        bench = Bench(tmp_path, "ring")
        yield bench
        bench.clear()


@pytest.mark.timeout(300)
def test_two_systems(bench: Bench) -> None:
    """Every command, and what it shows."""
    for part in headings("docs/test_ring_page.py::test_two_systems", "docs/ring.md"):
        if part == "### The shop alone":
            bench.press_ctrl_c_in(1)  # the depot's
        done = [bench.follow(command) for command in commands("docs/ring.md", part)]
        assert len(done) >= 2
    bench.press_ctrl_c()


@pytest.mark.parametrize("name", ["shop", "shop-queues", "depot", "depot-queues"])
def test_the_page_shows_what_is_in_the_files(name: str) -> None:
    shown = PAGE.partition(f"# {name}.yaml\n")[2].partition("```")[0]
    assert shown
    said = (ROOT / "docs" / "examples" / "ring" / f"{name}.yaml").read_text()
    for told, there in zip(yaml.safe_load_all(shown), yaml.safe_load_all(said), strict=True):
        assert contains(there, told)


def contains(there: object, told: object) -> bool:
    """What is told is there, whatever else is."""
    if isinstance(there, dict) and isinstance(told, dict):
        return all(name in there and contains(there[name], value) for name, value in told.items())
    return there == told


def test_the_settings_are_the_defaults_but_for_the_node() -> None:
    (told,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.partition("\n## Settings\n")[2], re.M | re.S)
    settings = RingSettings.model_validate(yaml.safe_load(told)["edges"]["ring"])
    defaults = RingSettings()
    assert settings.clients == defaults.clients
    assert settings.request_timeout_s == defaults.request_timeout_s
    assert settings.listeners == {"clients": defaults.listeners["clients"]}


def test_each_reason_is_on_the_page() -> None:
    reasons = PAGE.partition("### Reasons of refusals")[2]
    of_the_store = {kind.reason for kind in REFUSED if kind.reason != "store_error"}
    codec = {"unknown_operation", "truncated", "request_timeout"}
    assert codec <= said_in("protos/ring")
    wanted = codec | set(REFUSALS) | of_the_store | said_by_the_port() | {str(each) for each in Refusal}
    assert wanted | {"outcome_unknown", "replies_unread", "lease_lost", "too_late"} <= told_in(reasons)
