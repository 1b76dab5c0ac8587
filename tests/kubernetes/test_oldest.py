"""Check that the oldest Kubernetes of Chart.yaml accepts the CRDs, by its own validation, without a server."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml
from penstock_operator.documents.schema import RULES

from tests.kubernetes.cluster import CHART, DEFINITIONS
from tools.kubernetes.programs import OLDEST_VERSION, find


def check(*files: Path) -> tuple[int, str]:
    """Return the exit status and output of the validation."""
    done = subprocess.run([find("check-definitions"), *files], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_oldest_version_is_the_chart_minimum() -> None:
    minor = OLDEST_VERSION.rpartition(".")[0]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={minor}.0-0"


def test_oldest_version_accepts_the_definitions() -> None:
    files = sorted(DEFINITIONS.glob("*.yaml"))
    assert [file.stem for file in files] == ["peers", "queues", "redrives"]
    assert check(*files) == (0, "")


def test_unknown_function_and_costly_rule_are_reported(tmp_path: Path) -> None:
    """Check that functions of later versions, and rules that cost too much, are reported."""
    definition = yaml.safe_load((DEFINITIONS / "peers.yaml").read_text())
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    addresses = "self.addresses"
    everyone = f"{addresses}.all(a, {addresses}.all(b, {addresses}.all(c, a.matches(b + c))))"
    spec[RULES] = [{"rule": "isSemver('1')"}, {"rule": everyone}]
    bad = tmp_path / "peers.yaml"
    bad.write_text(yaml.safe_dump(definition))
    status, said = check(DEFINITIONS / "queues.yaml", bad)
    assert status == 1
    assert "undeclared reference to 'isSemver'" in said
    assert "estimated rule cost exceeds budget" in said
    assert "queues.yaml" not in said


def test_unknown_field_is_reported(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text((DEFINITIONS / "peers.yaml").read_text().replace("scope:", "scop:", 1))
    status, said = check(bad)
    assert status == 1
    assert 'unknown field "scop"' in said
    assert check()[0] == 1  # no file was checked
