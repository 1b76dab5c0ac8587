"""Test that skaffold.yaml names existing targets of the Dockerfile, values of the chart, and Services of the chart.

Skaffold itself does not run here, as it needs Docker; it was tested with the file by hand (docs/images.md).
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml

from tools.images.build import ROOT, targets
from tools.kubernetes.programs import find

CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "skaffold.yaml").read_text())
ALWAYS = CONFIG["build"]["artifacts"]
(RELEASE,) = CONFIG["deploy"]["helm"]["releases"]
PROFILES = {profile["name"]: profile for profile in CONFIG["profiles"]}
ARTIFACTS, TEMPLATES, VALUES = (
    "/build/artifacts/-",
    "/deploy/helm/releases/0/setValueTemplates/",
    "/deploy/helm/releases/0/setValues/",
)
IMAGE_VARIABLES = re.compile(r"{{\.IMAGE_(REPO|TAG)_(\w+)}}")


def patches_of(*profiles: str) -> list[dict[str, Any]]:
    """Return the patches in order. By RFC 6902, an `add` replaces an existing value."""
    return [patch for name in profiles for patch in PROFILES[name]["patches"]]


def images_of(*profiles: str) -> dict[str, dict[str, Any]]:
    """Return the artifacts by image name."""
    added = [patch["value"] for patch in patches_of(*profiles) if patch["path"] == ARTIFACTS]
    return {artifact["image"]: artifact for artifact in [*ALWAYS, *added]}


def values_of(*profiles: str) -> dict[str, str]:
    """Return the values for helm, as Skaffold would fill them in; fail on a patch of anything else."""
    templates, values = dict(RELEASE["setValueTemplates"]), dict(RELEASE["setValues"])
    for patch in patches_of(*profiles):
        assert patch["op"] == "add"
        path, value = patch["path"], patch["value"]
        assert path == ARTIFACTS or path.startswith((TEMPLATES, VALUES))
        if path.startswith(VALUES):
            values[path.removeprefix(VALUES)] = value
        elif path != ARTIFACTS:
            templates[path.removeprefix(TEMPLATES)] = value
    said = {name: json.dumps(each).strip('"') for name, each in values.items()}
    built = images_of(*profiles)

    def filled(found: re.Match[str]) -> str:
        image = found[2].replace("_", "-")
        assert image in built
        return image if found[1] == "REPO" else "built"

    return {**{name: IMAGE_VARIABLES.sub(filled, text) for name, text in templates.items()}, **said}


@cache
def rendered(*profiles: str) -> list[dict[str, Any]]:
    """Render the chart with the values; its schema rejects unknown ones."""
    flags = [word for name, value in values_of(*profiles).items() for word in ("--set", f"{name}={value}")]
    command = [find("helm"), "template", RELEASE["name"], str(ROOT / RELEASE["chartPath"]), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def test_every_image_is_a_target_of_the_dockerfile() -> None:
    images = images_of("dev", "analytics")
    built = {name: artifact["docker"] for name, artifact in images.items()}
    assert built == {
        f"penstock-{target}": {"dockerfile": "Dockerfile", "target": target} for target in targets()
    }
    assert all((ROOT / artifact["context"]).samefile(ROOT) for artifact in images.values())


@pytest.mark.parametrize("profiles", [(), *((name,) for name in PROFILES), ("dev", "analytics")])
def test_pods_of_every_profile_run_the_built_images(profiles: tuple[str, ...]) -> None:
    text = json.dumps(rendered(*profiles))
    used = set(re.findall(r'"image": "(penstock-[^"]*)"', text))
    assert used == {f"{name}:built" for name in images_of(*profiles)}


def test_profiles_add_up() -> None:
    both = values_of("dev", "analytics")
    assert (both["log.level"], both["analytics.enabled"]) == ("DEBUG", "true")
    assert both["console.enabled"] == "true"


def test_the_ports_that_are_forwarded_are_those_of_services() -> None:
    services = {
        (document["metadata"]["name"], port["port"])
        for document in rendered("dev")
        if document["kind"] == "Service"
        for port in document["spec"]["ports"]
    }
    forwarded = PROFILES["dev"]["portForward"]
    assert {(each["resourceName"], each["port"]) for each in forwarded} <= services
    assert {each["namespace"] for each in forwarded} == {RELEASE["namespace"]}


def test_minimal_is_one_pod_of_each() -> None:
    workloads = [each for each in rendered("minimal") if each["kind"] in ("Deployment", "StatefulSet")]
    assert sorted(each["metadata"]["name"] for each in workloads) == [
        "penstock-operator",
        "penstock-redis",
        "penstock-tmq",
    ]
    assert {each["spec"]["replicas"] for each in workloads} == {1}


def test_docs_name_the_required_skaffold_version() -> None:
    """Check the version in the docs: for another `apiVersion`, look it up in Skaffold's own list of versions."""
    docs = " ".join((ROOT / "docs" / "images.md").read_text().split())
    assert f"Skaffold 2.12.0 or newer, the first that knows `{CONFIG['apiVersion']}`" in docs
