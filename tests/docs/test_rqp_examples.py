"""The files of docs/examples/rqp are run as docs/rqp.md says, on ports that are free here; and its reasons are all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from services.kit.net.refusals import Refusal
from services.rqp.mca.troubles import WHY
from tests.cli.shell import Shell, running
from tests.docs.bench import LEFT
from tests.docs.test_reasons import said_in, told_in
from tests.servers import eventually, free_port
from tests.tmq.process import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "rqp"
PORT = re.compile(r"(?<=port: )\d+|(?<=127\.0\.0\.1:)\d+")
OF_QUEUES = {"queue_unknown", "queue_paused", "queue_full", "queue_reserved"}


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the folder with other ports, the same in all files."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=LEFT)
    ports: dict[str, int] = {}
    for path in folder.glob("*.yaml"):
        text = path.read_text()
        path.write_text(PORT.sub(lambda found: str(ports.setdefault(found[0], free_port())), text))
    return folder


def test_two_systems(examples: Path, tmp_path: Path) -> None:
    """What is put in at east stands at west; while west is away, the queue's condition says so."""
    west, east = (Shell(shutil.copytree(examples, tmp_path / name)) for name in ("west", "east"))
    for name in [name for name in west.environment if name.endswith("__PORT") and "HEALTH" not in name]:
        del west.environment[name]  # its ports are those of the file; those of east are any
    west_up = ("--config", "west.yaml", "--queues", "west-queues.yaml")
    with running(east, "--config", "east.yaml", "--queues", "east-queues.yaml"):
        with running(west, *west_up) as up:
            asked = subprocess.run(
                question(up.told["edges"]["rqp"]["listeners"]["mca"]["port"]),
                shell=True,
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
            assert asked.stdout == " 40 00 00 00 70\n"
            east.run("put", "orders-for-west", "three barrels")
            eventually(lambda: "three barrels" in west.run("peek", "orders", "--config", "west.yaml").text)
        east.run("put", "orders-for-west", "four barrels")
        eventually(lambda: "no_receiver: " in east.run("queue", "list").text)
        assert (
            "condition         no_receiver: no peer has queue 7"
            in east.run("queue", "show", "orders-for-west").text
        )


def question(port: int) -> str:
    """As the page has it."""
    page = (ROOT / "docs/rqp.md").read_text()
    (line,) = re.findall(r"^\$ (bash -c .*)$", page, re.M)
    return line.replace("11411", str(port))


def test_each_reason_is_on_the_page() -> None:
    page = (ROOT / "docs/rqp.md").read_text()
    reasons = page.partition("### Reasons of refusals")[2]
    codec = said_in("protos/rqp_mca") | {"unknown_message", "bad_uint4", "bad_type"}
    assert codec | OF_QUEUES | {str(reason) for reason in Refusal} <= told_in(reasons)
    failures = page.partition("## When nothing gets through")[2].partition("\n## ")[0]
    assert {failure.value for failure in WHY} <= told_in(failures)
