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
    assert [line.split()[0] for line in lines] == ["make", "helm", "helm", *["kubectl"] * 3]


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


def test_values_on_the_page_can_be_installed() -> None:
    """Check that values on the page can be installed; the examples have tests of their own."""
    shown = [block for kind, block in FENCE.findall(PAGE) if kind == "yaml" and not block.startswith(EXAMPLE)]
    assert len(shown) == 2
    for values in shown:
        assert render(yaml.safe_load(values)).of("Deployment")


def test_scrape_configuration_finds_pods_and_ports_of_the_chart() -> None:
    (text,) = [block for kind, block in FENCE.findall(PAGE) if "kubernetes_sd_configs" in block]
    rules = yaml.safe_load(text)["scrape_configs"][0]["relabel_configs"]
    kept = {rule["source_labels"][0]: rule["regex"] for rule in rules if rule.get("action") == "keep"}
    assert kept == {
        "__meta_kubernetes_pod_label_app_kubernetes_io_part_of": "penstock",
        "__meta_kubernetes_pod_container_port_name": "health",
    }
    assert {rule["target_label"] for rule in rules if "target_label" in rule} == {
        "namespace",
        "pod",
        "app_kubernetes_io_instance",
    }
    rendered = render({"fullnameOverride": "penstock", "console": {"enabled": True}})
    for place in ("Deployment/penstock-tmq", "Deployment/penstock-operator", "Deployment/penstock-console"):
        assert (
            rendered[place]["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/part-of"]
            == "penstock"
        )
        assert "health" in [port["name"] for port in rendered.container(place)["ports"]]


def test_claims_to_delete_are_those_of_the_chart() -> None:
    """Check that "To remove everything" names the volumes of a release with analytics."""
    rendered = render({"fullnameOverride": "penstock", "analytics": {"enabled": True}})
    (template,) = rendered["StatefulSet/penstock-redis"]["spec"]["volumeClaimTemplates"]
    (claim,) = rendered.of("PersistentVolumeClaim")
    named = f"{template['metadata']['name']}-penstock-redis-0 {claim['metadata']['name']}"
    assert f"kubectl delete pvc --namespace queues {named}`" in PAGE


def test_the_edges_user_is_created_by_the_same_command_for_every_store() -> None:
    ends = "exec penstock store rights --apply --password-file -'"
    lines = [line for line in PAGE.splitlines() if line.endswith(ends)]
    assert len(lines) == 2
    assert lines[0] == lines[1]


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_example_can_be_installed(example: Path) -> None:
    assert render(yaml.safe_load(example.read_text())).of("Deployment")
