"""Check docs/operations.md, "On a machine without Kubernetes": the unit is valid, its command and times are right."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli.terminal.exits import Exit
from services.kit.config.settings import DrainSettings
from services.kit.edge import edges
from services.kit.workers.workers import max_drain_s
from tests.docs.typed import complaint
from tests.tmq.process import ROOT

UNIT = ROOT / "docs" / "examples" / "systemd" / "penstock@.service"
# more starts within that time are a failure: systemd.unit(5), StartLimitBurst and its interval
STARTS, STARTS_S = (5, 10.0)
PROGRAM = "/opt/penstock/bin/penstock"
TEXT = UNIT.read_text()


def unit() -> configparser.ConfigParser:
    """Return the unit; of a name that is repeated, as EnvironmentFile, the last value counts."""
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(TEXT)
    return read


def service() -> configparser.SectionProxy:
    return unit()["Service"]


def test_the_page_shows_it() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert f"# {UNIT.relative_to(ROOT)}\n{TEXT}```\n" in page


@pytest.mark.parametrize("edge", sorted(edges()))
def test_its_command_can_be_typed(edge: str) -> None:
    program, *words = shlex.split(service()["ExecStart"].replace("%i", edge))
    assert program == PROGRAM
    assert complaint(["penstock", *words]) == ""


def test_comment_names_each_edge() -> None:
    first, *_ = TEXT.splitlines()
    assert {
        word.rstrip(",").partition("@")[2] for word in first.split() if word.startswith("penstock@")
    } == set(edges())


def test_stop_timeout_exceeds_the_drain() -> None:
    assert float(service()["TimeoutStopSec"]) > max_drain_s(DrainSettings())


def test_service_is_restarted_for_ever() -> None:
    """Check that the unit restarts for ever, also after a usage error: an address may become available later."""
    assert service()["Restart"] == "always"
    assert "RestartPreventExitStatus" not in service()
    assert not [name for name in (*unit()["Unit"], *service()) if name.startswith("StartLimit")]
    assert float(service()["RestartSec"]) * STARTS >= STARTS_S, "systemd would give up"
    page = (ROOT / "docs/operations.md").read_text()
    assert f"started again after {service()['RestartSec']} s, also one that ends with {Exit.USAGE:d}," in (
        " ".join(page.split())
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("edge", sorted(edges()))
def test_systemd_takes_it(tmp_path: Path, edge: str) -> None:
    """Check that systemd accepts the unit with an existing program, and reports settings that it does not know."""

    def complaints(text: str) -> str:
        unit = tmp_path / f"penstock@{edge}.service"
        unit.write_text(text.replace(PROGRAM, sys.executable))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
        )
        return "\n".join(line for line in done.stderr.splitlines() if str(unit) in line or unit.name in line)

    assert complaints(TEXT) == ""
    assert "RestartsSec" in complaints(TEXT.replace("RestartSec", "RestartsSec"))
