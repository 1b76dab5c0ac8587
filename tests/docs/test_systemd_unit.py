"""docs/operations.md, "On a machine without Kubernetes": the unit is one, and its command and times are Penstock's."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.kit.edge import edges
from services.kit.settings import DrainSettings
from services.kit.workers import longest_drain_s
from tests.docs.typed import complaint
from tests.tmq.process import ROOT

UNIT = ROOT / "docs" / "examples" / "systemd" / "penstock@.service"
PROGRAM = "/opt/penstock/bin/penstock"
TEXT = UNIT.read_text()


def service() -> configparser.SectionProxy:
    """systemd's files say a name twice, as EnvironmentFile; the last one counts here."""
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(TEXT)
    return read["Service"]


def test_the_page_shows_it() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert f"# {UNIT.relative_to(ROOT)}\n{TEXT}```\n" in page


@pytest.mark.parametrize("edge", sorted(edges()))
def test_its_command_can_be_typed(edge: str) -> None:
    program, *words = shlex.split(service()["ExecStart"].replace("%i", edge))
    assert program == PROGRAM
    assert complaint(["penstock", *words]) == ""


def test_it_names_each_edge() -> None:
    first, *_ = TEXT.splitlines()
    assert {
        word.rstrip(",").partition("@")[2] for word in first.split() if word.startswith("penstock@")
    } == set(edges())


def test_it_waits_for_a_drain_and_begins_again() -> None:
    """Also after a fault of settings: an address may only be there later."""
    assert float(service()["TimeoutStopSec"]) > longest_drain_s(DrainSettings())
    assert service()["Restart"] == "always"
    assert "RestartPreventExitStatus" not in service()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("edge", sorted(edges()))
def test_systemd_takes_it(tmp_path: Path, edge: str) -> None:
    """With a program that is there; and what it does not know would be told."""

    def told(text: str) -> str:
        unit = tmp_path / f"penstock@{edge}.service"
        unit.write_text(text.replace(PROGRAM, sys.executable))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
        )
        return "\n".join(line for line in done.stderr.splitlines() if str(unit) in line or unit.name in line)

    assert told(TEXT) == ""
    assert "RestartsSec" in told(TEXT.replace("RestartSec", "RestartsSec"))
