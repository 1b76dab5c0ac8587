"""Check docs/chart.md: its commands, its files from docs/examples/chart, and the runbooks of its alerts."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.chart import render
from tests.docs.bench import commands as followed
from tests.kubernetes.cluster import CHART, DEFINITIONS, Cluster
from tests.kubernetes.namespaces import remove_namespace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "chart.md").read_text()
EXAMPLES = ROOT / "docs" / "examples" / "chart"
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
EXAMPLE = "# docs/examples/chart/"
NAMESPACE = "queues"


def sections() -> dict[str, str]:
    """Return the text of each section by heading."""
    _, *parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return {heading: text for heading, _, text in (part.partition("\n") for part in parts)}


def commands(section: str) -> list[list[str]]:
    lines = [line for _, block in FENCE.findall(section) for line in block.replace("\\\n", "").splitlines()]
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


@pytest.fixture
def queues(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    """Yield a cluster for the page's namespace, which the page creates, in the folder that the page names."""
    monkeypatch.chdir(ROOT)
    yield cluster
    cluster.helm("uninstall", "penstock", "--namespace", NAMESPACE, "--no-hooks", "--ignore-not-found")
    remove_namespace(cluster, NAMESPACE)
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def run(cluster: Cluster, command: list[str]) -> None:
    program, *words = command
    {"helm": cluster.helm, "kubectl": cluster.kubectl}[program](*words)


def test_the_readme_of_the_chart_installs_as_the_readme_does() -> None:
    """Check that both READMEs give the same commands, which tests/e2e/test_release.py runs on a node."""
    lines = [command.line for command in followed("README.md", "## On Kubernetes")]
    (own,) = [block for kind, block in FENCE.findall((CHART / "README.md").read_text()) if not kind]
    assert own.splitlines() == [f"$ {line}" for line in lines[1:3]]
    assert [line.split()[0] for line in lines] == ["make", "helm", "helm", *["kubectl"] * 3, "helm"]


def test_its_upgrade_finds_values_that_the_chart_before_did_not_have(queues: Cluster, tmp_path: Path) -> None:
    """Check that an upgrade from a chart without some of today's values keeps the values that were set."""
    older = tmp_path / "older"
    shutil.copytree(CHART, older)
    values = yaml.safe_load((older / "values.yaml").read_text())
    del values["helmTest"]
    (older / "values.yaml").write_text(yaml.safe_dump(values))
    (older / "values.schema.json").unlink()  # requires the values of today
    shutil.rmtree(older / "templates" / "tests")
    notes = older / "templates" / "NOTES.txt"
    notes.write_text(notes.read_text().replace(".Values.helmTest.enabled", "false"))
    said = ("--create-namespace", "--set", "edges.rqp.replicas=4")
    queues.helm("install", "penstock", str(older), "--namespace", NAMESPACE, *said)
    (upgrade,) = commands(sections()["Upgrade"])
    run(queues, upgrade)
    replicas = {
        each["metadata"]["name"]: each["spec"]["replicas"] for each in queues.items("deployments", NAMESPACE)
    }
    assert (replicas["penstock-tmq"], replicas["penstock-rqp"]) == (3, 4)


def test_its_files_are_the_examples() -> None:
    blocks = [block for _, block in FENCE.findall(PAGE) if block.startswith(EXAMPLE)]
    assert len(blocks) == 6
    for block in blocks:
        name, _, text = block.partition("\n")
        example = ROOT / name.removeprefix("# ")
        assert yaml.safe_load(text) == yaml.safe_load(example.read_text())


def test_whatever_values_it_shows_can_be_installed() -> None:
    """Check that values on the page can be installed; the examples have tests of their own."""
    shown = [block for kind, block in FENCE.findall(PAGE) if kind == "yaml" and not block.startswith(EXAMPLE)]
    assert len(shown) == 2
    for values in shown:
        assert render(yaml.safe_load(values)).of("Deployment")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_example_can_be_installed(example: Path) -> None:
    assert render(yaml.safe_load(example.read_text())).of("Deployment")
