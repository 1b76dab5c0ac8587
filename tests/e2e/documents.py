"""Run the commands of the Kubernetes pages as written, with names of a test's release substituted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chart.chart import Values, together
from tests.docs.bench import Command, commands, parse_command, words
from tests.e2e.release import FULL, NAME, TIMEOUT, Release
from tests.kit.authority import Authority
from tests.tmq.process import ROOT
from tools.kubernetes.programs import find

REGISTRY, NAMESPACE = "registry.example/team", "queues"  # names used on the pages
COMMAND_S = 300.0
FORWARDING_S = 2
INSTALLING = ("helm install ", "helm template ")
SUBSTITUTED = {  # objects made by the test, or named differently here
    f"kubectl create namespace {NAMESPACE}": f"kubectl get namespace {NAMESPACE}",
    f"namespace {NAMESPACE}": "namespace {namespace}",
    f"--namespace={NAMESPACE}": "--namespace={namespace}",
    "@store.example:": "@store:",  # tests/e2e/outside.py
    "valkey-cli": "redis-cli",  # the page names this substitute for images of Redis
}


class Typist:
    """A shell in a folder with the chart and its examples, with the namespace of the release as current context."""

    def __init__(self, release: Release, folder: Path, values: Values | None = None) -> None:
        """Prepare the folder; `values` override those that the page installs."""
        self._release = release
        self._more = values or {}
        self._folder = folder
        (folder / "charts").symlink_to(ROOT / "charts")
        examples = shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
        images = examples / "chart" / "images.yaml"
        images.write_text(images.read_text().replace(REGISTRY, release.images.prefix.rstrip("/")))
        self._values = folder / "values.json"
        self._environment = {**release.cluster.environment, "PATH": self._programs(folder / "bin")}
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_bytes(release.cluster.kubeconfig.read_bytes())
        self._environment["KUBECONFIG"] = str(kubeconfig)
        self._run(f"kubectl config set-context --current --namespace {release.namespace}")

    def _programs(self, folder: Path) -> str:
        """Return a PATH with kubectl, helm, and a `penstock` that runs in a pod of an edge."""
        folder.mkdir()
        for name in ("kubectl", "helm"):
            (folder / name).symlink_to(find(name))
        penstock = folder / "penstock"
        penstock.write_text(f'#!/bin/sh\nexec kubectl exec deploy/{FULL}-tmq -- penstock "$@"\n')
        penstock.chmod(0o755)
        return f"{folder}:{Path(sys.executable).parent}:{self._release.cluster.environment['PATH']}"

    def become_tenant(self) -> None:
        """Run later commands as an account with the role `admin` in this namespace only."""
        here = f"--namespace {self._release.namespace}"
        self._run(f"kubectl create serviceaccount tenant {here}")
        account = f"--serviceaccount {self._release.namespace}:tenant"
        self._run(f"kubectl create rolebinding tenant --clusterrole admin {account} {here}")
        self._run(f"kubectl config set-credentials tenant --token $(kubectl create token tenant {here})")
        self._run("kubectl config set-context --current --user tenant")

    def section(self, page: str, heading: str, first: str = "", last: str = "") -> None:
        """Run the commands of a section, from the one that begins with `first` to the one that begins with `last`."""
        chosen = list(commands(page, heading))
        begins = [command.line for command in chosen]
        start = _index(begins, first) if first else 0
        end = _index(begins, last) + 1 if last else len(chosen)
        assert chosen[start:end]
        for command in chosen[start:end]:
            self.type(command)

    def notes(self) -> Iterator[Command]:
        """Yield the commands printed in the NOTES of the release."""
        lines = self._run(f"helm get notes {NAME}").splitlines()
        for number, line in enumerate(lines):
            if line.strip().startswith(("kubectl ", "helm ")):
                text = "\n".join([line.strip(), *lines[number + 1 :]])
                yield Command(parse_command(text).line, "")

    def write(self, name: str, content: str) -> None:
        """Write a file that the commands read."""
        (self._folder / name).write_text(content)

    def type(self, command: Command) -> str:
        """Run a command and return its output. Raise AssertionError if it differs from the output on the page."""
        line = command.line
        for written, here in SUBSTITUTED.items():
            line = line.replace(written, here.format(namespace=self._release.namespace))
        if line.startswith(INSTALLING):
            self._values.write_text(json.dumps(together(self._release.surroundings(), self._more)))
            line += f" --values {self._values}"
        if line.startswith("helm install "):
            line += f" --wait --timeout {TIMEOUT}"
        if " port-forward " in line:  # port-forward runs until it is killed
            line = f"timeout {FORWARDING_S} {line} || [ $? = 124 ]"
        printed = self._run(line)
        if command.shown.strip():
            assert words(printed) == words(command.shown), line
        return printed

    def _run(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line], cwd=self._folder, env=self._environment,
            capture_output=True, text=True, timeout=COMMAND_S,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout


def certificate(folder: Path) -> dict[str, str]:
    """Return the files of a certificate as cert-manager names them, with an authority of its own."""
    Authority.create(folder)
    files = {"tls.crt": "chain.pem", "tls.key": "key.pem", "ca.crt": "ca.pem"}
    return {name: (folder / file).read_text() for name, file in files.items()}


def _index(lines: Sequence[str], begins: str) -> int:
    (found,) = [number for number, line in enumerate(lines) if line.startswith(begins)]
    return found
