"""Use a cluster as the owner of a kubeconfig: by API calls, and by real kubectl and helm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.kubernetes.client import MERGE_PATCH, Client, CommandFailed, Document, three_way
from tests.servers import PATIENCE_S, eventually
from tools.kubernetes.programs import find

COMMAND_TIMEOUT_S = 120.0
CHART = Path(__file__).parents[2] / "charts" / "penstock"
DEFINITIONS = CHART / "files" / "crds"
STRICT = "?fieldValidation=Strict&fieldManager=tests"
DEFAULT_NAMESPACE = "default"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl compares with it
AUTHORIZATION = "authorization.k8s.io/v1"

__all__ = ["CHART", "DEFINITIONS", "Cluster", "CommandFailed", "Document"]


class Cluster:
    """A cluster as seen by a user. kubectl and helm keep their files in `home`, without any other settings.

    A command needs a hundred times the processor time of a call: use it for tests of kubectl or helm.
    """

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.kubeconfig = kubeconfig
        self.timeout_s = COMMAND_TIMEOUT_S  # of each command, including its waiting
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
        }

    def kubectl(self, *words: str, given: str = "") -> str:
        """Return the output of kubectl, with `given` as its input. Raises CommandFailed."""
        return self._run("kubectl", words, given)

    def helm(self, *words: str, given: str = "") -> str:
        """Return the output of helm, with `given` as its input. Raises CommandFailed."""
        return self._run("helm", words, given)

    @cached_property
    def api(self) -> Client:
        return Client(self.kubeconfig)

    def apply(self, documents: Sequence[Document], *flags: str) -> None:
        """Apply documents as kubectl does; use kubectl for other flags than --namespace. Raises CommandFailed."""
        if flags and flags[:-1] != ("--namespace",):
            listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
            self.kubectl("apply", "--filename", "-", *flags, given=json.dumps(listed))
            return
        for document in documents:
            metadata = document["metadata"]
            path = self._path_of(document, flags[-1] if flags else "")
            notes = {**metadata.get("annotations", {}), LAST_APPLIED: json.dumps(document)}
            given = {**document, "metadata": {**metadata, "annotations": notes}}
            try:
                found = self.api.call("GET", f"{path}/{metadata['name']}")
            except CommandFailed as error:
                if error.status != 404:
                    raise
                self.api.call("POST", path + STRICT, given)
                continue
            before = json.loads(found["metadata"].get("annotations", {}).get(LAST_APPLIED, "{}"))
            patch = three_way(before, given)
            self.api.call("PATCH", f"{path}/{metadata['name']}{STRICT}", patch, MERGE_PATCH)

    def create(self, document: Document, namespace: str = "", *, dry_run: bool = False) -> dict[str, Any]:
        """Create an object, and return it as the API server completes it. Raises CommandFailed."""
        words = STRICT + ("&dryRun=All" if dry_run else "")
        return self.api.call("POST", self._path_of(document, namespace) + words, document)

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        """Return an object. Raises CommandFailed."""
        return self.api.call("GET", self._path(kind, name, namespace))

    def items(self, kind: str, namespace: str = "") -> list[dict[str, Any]]:
        """Return all objects of a kind in the namespace, or in the cluster. Raises CommandFailed."""
        response = self.api.call("GET", self.api.resource(kind).path(namespace))
        common = {"apiVersion": response["apiVersion"], "kind": response["kind"].removesuffix("List")}
        return [{**common, **each} for each in response["items"] or ()]

    def patch(
        self, kind: str, name: str, patch: Document, namespace: str = "", subresource: str = ""
    ) -> None:
        """Apply a merge patch. Raises CommandFailed."""
        path = self._path(kind, name, namespace) + (f"/{subresource}" if subresource else "")
        self.api.call("PATCH", path + STRICT, patch, MERGE_PATCH)

    def delete(self, kind: str, name: str, namespace: str = "", patience_s: float = PATIENCE_S) -> None:
        """Delete an object, and return once it is gone unless patience_s is 0. Raises CommandFailed, AssertionError."""
        path = self._path(kind, name, namespace)
        response = self.api.call("DELETE", path)
        uid = response["details"]["uid"] if response["kind"] == "Status" else response["metadata"]["uid"]
        if patience_s:
            eventually(lambda: self._is_gone(path, uid), patience_s)

    def _is_gone(self, path: str, uid: str) -> bool:
        """Return whether the object is gone, even if another one has its name."""
        try:
            return bool(self.api.call("GET", path)["metadata"]["uid"] != uid)
        except CommandFailed as error:
            if error.status != 404:
                raise
            return True

    def may(self, verb: str, kind: str, namespace: str = "") -> bool:
        """Return whether RBAC allows a request; the server applies a new binding after some time."""
        word, _, subresource = kind.partition("/")
        resource = self.api.resource(word)
        asked = {"verb": verb, "group": resource.group, "resource": resource.plural}
        attributes = {**asked, "subresource": subresource, "namespace": namespace}
        review = {
            "apiVersion": AUTHORIZATION,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        response = self.api.call("POST", f"/apis/{AUTHORIZATION}/selfsubjectaccessreviews", review)
        return bool(response["status"]["allowed"])

    def new_token(self, namespace: str, account: str) -> str:
        """Return a token for a service account, valid for an hour. Raises CommandFailed."""
        path = self._path("serviceaccounts", account, namespace)
        token: str = self.api.call("POST", f"{path}/token", {"spec": {}})["status"]["token"]
        return token

    def _path(self, kind: str, name: str, namespace: str) -> str:
        return self.api.resource(kind).path(namespace or DEFAULT_NAMESPACE, name)

    def _path_of(self, document: Document, namespace: str) -> str:
        """Return the path at which objects of this kind are created."""
        namespace = document["metadata"].get("namespace") or namespace or DEFAULT_NAMESPACE
        return self.api.resource_of(document).path(namespace)

    def _run(self, name: str, words: Sequence[str], given: str) -> str:
        done = subprocess.run(
            [find(name), *words],
            input=given,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
        )
        if done.returncode:
            raise CommandFailed([name, *words], done.returncode, done.stderr.strip())
        return done.stdout
