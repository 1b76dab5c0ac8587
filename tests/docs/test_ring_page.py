"""Run docs/ring.md as it is written, and check that its list of reasons is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from protos.ring import REFUSALS
from services.kit.net.refusals import Refusal
from services.ring.error_texts import REFUSED
from services.ring.settings import RingSettings
from tests.docs.bench import Bench, commands
from tests.docs.inventory import headings
from tests.docs.test_reasons import labels_in, labels_used_in
from tests.ring.clients.test_error_texts import said_by_the_port
from tests.sysv.namespace import own_machine
from tests.tmq.process import ROOT

RING = "docs/ring.md"
PAGE = (ROOT / RING).read_text()


def test_the_page_of_the_command_line_shows_the_same_line_to_try_it() -> None:
    (command,) = commands(RING, "## Try it")
    assert f"    {command.line}\n" in (ROOT / "docs/cli.md").read_text()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Yield a bench on a network with the page's ports free."""
    with own_machine():
        bench = Bench(tmp_path, "ring")
        yield bench
        bench.clear()


@pytest.mark.timeout(300)
def test_two_systems(bench: Bench) -> None:
    """Check every command and its output; "Try it" runs at the shop before the depot is started."""
    first, *parts = headings("docs/test_ring_page.py::test_two_systems", RING)
    for part in parts:
        if part == "### The shop alone":
            bench.press_ctrl_c_in(1)  # the depot's terminal
        found = list(commands(RING, part))
        assert len(found) >= 2
        for command in found:
            bench.follow(command)
            if part == parts[0] and command == found[0]:
                try_it(bench, first)
    bench.press_ctrl_c()


def try_it(bench: Bench, part: str) -> None:
    """Run the commands and the program of a section, and check the queues that they leave behind."""
    for command in commands(RING, part):
        bench.follow(command)
    ((program, printed),) = re.findall(
        r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE.partition(f"\n{part}\n")[2], re.M | re.S
    )[:1]
    (bench.folder / "program.py").write_text(program)
    assert bench.run("python program.py") == printed
    for name in ("hello", "orders"):
        (row,) = map(
            json.loads, bench.run(f"penstock queue list {name} --json --config shop.yaml").splitlines()
        )
        assert row["owner"] == "edge:ring"
        bench.run(f"penstock queue delete {name} --yes --config shop.yaml")


@pytest.mark.parametrize("name", ["shop", "shop-queues", "depot", "depot-queues"])
def test_page_shows_the_example_files(name: str) -> None:
    shown = PAGE.partition(f"# {name}.yaml\n")[2].partition("```")[0]
    assert shown
    said = (ROOT / "docs" / "examples" / "ring" / f"{name}.yaml").read_text()
    for expected, there in zip(yaml.safe_load_all(shown), yaml.safe_load_all(said), strict=True):
        assert contains(there, expected)


def contains(there: object, expected: object) -> bool:
    """Return whether all expected fields are present; other fields are ignored."""
    if isinstance(there, dict) and isinstance(expected, dict):
        return all(name in there and contains(there[name], value) for name, value in expected.items())
    return there == expected


def test_the_settings_are_the_defaults_but_for_the_node() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.partition("\n## Settings\n")[2], re.M | re.S)
    settings = RingSettings.model_validate(yaml.safe_load(block)["edges"]["ring"])
    defaults = RingSettings()
    assert settings.clients == defaults.clients
    assert settings.request_timeout_s == defaults.request_timeout_s
    assert settings.listeners == {"clients": defaults.listeners["clients"]}


def test_each_reason_is_on_the_page() -> None:
    reasons = PAGE.partition("### Reasons of refusals")[2]
    of_the_store = {kind.reason for kind in REFUSED if kind.reason != "store_error"}
    codec = {"unknown_operation", "truncated", "request_timeout"}
    assert codec <= labels_used_in("protos")
    wanted = codec | set(REFUSALS) | of_the_store | said_by_the_port() | {str(each) for each in Refusal}
    assert wanted | {"outcome_unknown", "replies_unread", "lease_lost", "too_late"} <= labels_in(reasons)
