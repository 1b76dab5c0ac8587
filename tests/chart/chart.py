"""The chart as helm renders it, without a cluster."""

from __future__ import annotations

import fcntl
import hashlib
import pickle
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import CHART
from tools.kubernetes.programs import find

RELEASE, NAMESPACE = "demo", "shop"
NAME = f"{RELEASE}-penstock"
Object = dict[str, Any]
Values = Mapping[str, Any]


class Shared:
    """What helm renders, in a folder of all processes of a test session; None: each for itself."""

    folder: Path | None = None


FULL: Values = yaml.safe_load(Path(__file__).with_name("full.yaml").read_text())


class Refused(Exception):
    """helm's words."""


@dataclass(frozen=True)
class Rendered:
    """What a release consists of, by kind and name, hooks and tests included."""

    objects: dict[str, Object]

    def __contains__(self, place: str) -> bool:
        return place in self.objects

    def __getitem__(self, place: str) -> Object:
        return self.objects[place]

    def of(self, *kinds: str) -> list[Object]:
        return [each for each in self.objects.values() if each["kind"] in kinds]

    def pod(self, place: str) -> Any:
        """A workload's pod template's spec."""
        return pod_of(self.objects[place])["spec"]

    def container(self, place: str) -> Any:
        return self.pod(place)["containers"][0]

    def env(self, place: str) -> dict[str, Any]:
        """Variables; '' of those that come from elsewhere."""
        return {each["name"]: each.get("value", "") for each in self.container(place)["env"]}

    def file(self, edge: str) -> Any:
        """An edge's penstock.yaml."""
        return yaml.safe_load(self.objects[f"ConfigMap/{NAME}-{edge}"]["data"]["penstock.yaml"])

    def executor(self) -> Any:
        """The pod that Spark makes for analytics."""
        return yaml.safe_load(self.objects[f"ConfigMap/{NAME}-analytics"]["data"]["executor.yaml"])

    def pods(self) -> Iterator[tuple[str, Any]]:
        """Every pod and pod template, with the place of what has it."""
        for place, each in self.objects.items():
            if (found := pod_of(each)) is not None:
                yield place, found


def pod_of(each: Object) -> Any:
    """The pod or pod template of an object, None if it has none."""
    match each["kind"]:
        case "Pod":
            return each
        case "CronJob":
            return each["spec"]["jobTemplate"]["spec"]["template"]
        case "Deployment" | "StatefulSet" | "Job":
            return each["spec"]["template"]
    return None


def workload(component: str) -> str:
    """Return the place of an edge or another part of a release."""
    return f"{'StatefulSet' if component == 'ring' else 'Deployment'}/{NAME}-{component}"


def nested(path: str, value: Any) -> dict[str, Any]:
    """Values with `value` at 'a.b.c'."""
    for name in reversed(path.split(".")):
        value = {name: value}
    found: dict[str, Any] = value
    return found


def together(*parts: Values) -> dict[str, Any]:
    """One over the other, at every depth."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = together(merged[name], value) if both else value
    return merged


# with a cluster to look at, the Job before an uninstall is there by itself
AS_INSTALLED: Values = nested("operator.uninstallHook.always", True)


def render(
    *values: Values, flags: tuple[str, ...] = (), release: str = RELEASE, namespace: str = NAMESPACE
) -> Rendered:
    """Return the objects of a release. Raises Refused."""
    words = ("template", release, str(CHART), "--namespace", namespace, "-f", "-", *flags)
    return Rendered(pickle.loads(_once(words, yaml.safe_dump(together(AS_INSTALLED, *values)), namespace)))


def notes(*values: Values) -> str:
    """Return what helm says at the end of an installation, with single blanks. Raises Refused."""
    words = ("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client", "-f", "-")
    said = pickle.loads(_once(words, yaml.safe_dump(together(*values))))
    return " ".join(said.partition("\nNOTES:\n")[2].split())


@cache
def _once(words: tuple[str, ...], values: str, namespace: str = "") -> bytes:
    """Run helm once in a session. Return what it prints, or its objects if they have a namespace, pickled."""
    if Shared.folder is None:
        return _run(words, values, namespace)
    place = Shared.folder / hashlib.sha256(repr((words, values)).encode()).hexdigest()
    with place.open("a+b") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        kept.seek(0)
        if not (found := kept.read()):
            found = _run(words, values, namespace)
            kept.write(found)
    return found


def _run(words: tuple[str, ...], values: str, namespace: str) -> bytes:
    text = helm(words, values)
    return pickle.dumps(index(text, namespace) if namespace else text)


def helm(words: tuple[str, ...], values: str = "") -> str:
    """Return what helm prints. Raises Refused."""
    command = [find("helm"), *words]
    done = subprocess.run(command, input=values, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def index(text: str, own: str) -> dict[str, Object]:
    found: dict[str, Object] = {}
    for each in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if each is None:
            continue
        place = f"{each['kind']}/{each['metadata']['name']}"
        if (namespace := each["metadata"].get("namespace", own)) != own:
            place = f"{place}@{namespace}"
        assert place not in found, f"{place} is there twice"
        found[place] = each
    return found


def refusal(values: Values) -> str:
    """Return what helm says of values that it refuses, with single blanks."""
    with pytest.raises(Refused) as refused:
        render(values)
    return " ".join(str(refused.value).split())
