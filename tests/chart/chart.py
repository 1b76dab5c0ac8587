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
    """A cache of helm's output for all processes of a test session; without a folder, one for each process."""

    folder: Path | None = None


FULL: Values = yaml.safe_load(Path(__file__).with_name("full.yaml").read_text())


class Refused(Exception):
    """helm's error message."""


@dataclass(frozen=True)
class Rendered:
    """All objects of a release by kind and name, including hooks and tests."""

    objects: dict[str, Object]

    def __contains__(self, place: str) -> bool:
        return place in self.objects

    def __getitem__(self, place: str) -> Object:
        return self.objects[place]

    def of(self, *kinds: str) -> list[Object]:
        return [each for each in self.objects.values() if each["kind"] in kinds]

    def pod(self, place: str) -> Any:
        """Return the spec of the pod template of a workload."""
        return pod_of(self.objects[place])["spec"]

    def container(self, place: str) -> Any:
        return self.pod(place)["containers"][0]

    def env(self, place: str) -> dict[str, Any]:
        """Return the environment; '' for variables with `valueFrom`."""
        return {each["name"]: each.get("value", "") for each in self.container(place)["env"]}

    def file(self, edge: str) -> Any:
        """Return penstock.yaml of an edge."""
        return yaml.safe_load(self.objects[f"ConfigMap/{NAME}-{edge}"]["data"]["penstock.yaml"])

    def executor(self) -> Any:
        """Return the pod template of Spark executors."""
        return yaml.safe_load(self.objects[f"ConfigMap/{NAME}-analytics"]["data"]["executor.yaml"])

    def pods(self) -> Iterator[tuple[str, Any]]:
        """Yield every pod and pod template, with the key of its owner."""
        for place, each in self.objects.items():
            if (found := pod_of(each)) is not None:
                yield place, found


def pod_of(each: Object) -> Any:
    """Return the pod or pod template of an object, or None."""
    match each["kind"]:
        case "Pod":
            return each
        case "CronJob":
            return each["spec"]["jobTemplate"]["spec"]["template"]
        case "Deployment" | "StatefulSet" | "Job":
            return each["spec"]["template"]
    return None


def workload(component: str) -> str:
    """Return the key of the workload of an edge or another component."""
    return f"{'StatefulSet' if component == 'ring' else 'Deployment'}/{NAME}-{component}"


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return values with `value` at the path 'a.b.c'."""
    for name in reversed(path.split(".")):
        value = {name: value}
    found: dict[str, Any] = value
    return found


def together(*parts: Values) -> dict[str, Any]:
    """Merge the second mapping into the first, recursively."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = together(merged[name], value) if both else value
    return merged


# with access to a cluster, helm renders the uninstall Job by default
AS_INSTALLED: Values = nested("operator.uninstallHook.always", True)


def render(
    *values: Values, flags: tuple[str, ...] = (), release: str = RELEASE, namespace: str = NAMESPACE
) -> Rendered:
    """Return the objects of a release. Raises Refused."""
    words = ("template", release, str(CHART), "--namespace", namespace, "-f", "-", *flags)
    return Rendered(pickle.loads(_once(words, yaml.safe_dump(together(AS_INSTALLED, *values)), namespace)))


def notes(*values: Values) -> str:
    """Return NOTES.txt as rendered, with single blanks. Raises Refused."""
    words = ("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client", "-f", "-")
    given = pickle.loads(_once(words, yaml.safe_dump(together(*values))))
    return " ".join(given.partition("\nNOTES:\n")[2].split())


@cache
def _once(words: tuple[str, ...], values: str, namespace: str = "") -> bytes:
    """Run helm once in a session. Return its output, or its objects (with a namespace), pickled."""
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
    """Return helm's output. Raises Refused."""
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
    """Return helm's error for invalid values, with single blanks."""
    with pytest.raises(Refused) as refused:
        render(values)
    return " ".join(str(refused.value).split())
