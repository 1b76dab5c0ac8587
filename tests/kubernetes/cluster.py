"""A cluster as somebody with a kubeconfig sees it: through real kubectl and helm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.kubernetes.programs import find

COMMAND_TIMEOUT_S = 120.0
CHART = Path(__file__).parents[2] / "charts" / "penstock"
DEFINITIONS = CHART / "files" / "crds"
Document = Mapping[str, Any]


class CommandFailed(Exception):
    """A command that ended with another status than 0; its message is what the command said of that."""

    def __init__(self, command: Sequence[str], status: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {status}: {said}")
        self.status = status
        self.said = said  # stderr


class Cluster:
    """`home` is where kubectl and helm keep their own files; nobody's settings are used, and none changed."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.kubeconfig = kubeconfig
        self.timeout_s = COMMAND_TIMEOUT_S  # of each command, whatever it waits for
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
        }

    def kubectl(self, *words: str, given: str = "") -> str:
        """What it prints; `given` is what it reads. Raises CommandFailed."""
        return self._run("kubectl", words, given)

    def helm(self, *words: str, given: str = "") -> str:
        """What it prints; `given` is what it reads. Raises CommandFailed."""
        return self._run("helm", words, given)

    def apply(self, documents: Sequence[Document], *flags: str) -> str:
        """What kubectl says of each. Raises CommandFailed."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        return self.kubectl("apply", "--filename", "-", *flags, given=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        """Raises CommandFailed."""
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json", *_within(namespace)))
        return found

    def items(self, kind: str, namespace: str = "") -> list[dict[str, Any]]:
        """All of that kind in the namespace, or on the cluster. Raises CommandFailed."""
        where = _within(namespace) or ("--all-namespaces",)
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json", *where))["items"]
        return found

    def may(self, verb: str, kind: str, namespace: str = "") -> bool:
        """By RBAC; the server comes to know of a new binding some time after it was made."""
        return "yes" in self._answer("kubectl", ["auth", "can-i", verb, kind, *_within(namespace)]).stdout

    def _run(self, name: str, words: Sequence[str], given: str) -> str:
        done = self._answer(name, words, given)
        if done.returncode:
            raise CommandFailed([name, *words], done.returncode, done.stderr.strip())
        return done.stdout

    def _answer(self, name: str, words: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [find(name), *words],
            input=given,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
        )


def _within(namespace: str) -> tuple[str, ...]:
    return ("--namespace", namespace) if namespace else ()
