"""Documents of pods and Services for tests, fit for "restricted" namespaces, and helpers to use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.kubernetes.cluster import Cluster, Document

READY_S = 60
USER = 10001
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# resources: without a request it gets a 150th of a processor shared with edges
SERVER = {"requests": {"cpu": "100m"}}
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}}
# the first process of a container ignores SIGTERM unless it has a handler
IDLE = ("sh", "-c", "trap exit TERM; while :; do sleep 1 & wait $!; done")


def pod(
    name: str,
    image: str,
    *,
    args: Sequence[str] = (),
    command: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    ready: Mapping[str, Any] | None = None,
    writable: str = "/tmp",
) -> Document:
    """Return a pod labelled `app: <name>`; `ready` is its readiness probe, `writable` its only writable folder."""
    container: dict[str, Any] = {
        "name": name,
        "image": image,
        "args": list(args),
        "command": list(command),
        "env": [{"name": key, "value": value} for key, value in (environment or {}).items()],
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "writable", "mountPath": writable}],
    }
    if ready:
        container["readinessProbe"] = {**ready, "periodSeconds": 1}
    spec = {
        "containers": [container],
        "securityContext": POD_SECURITY,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "volumes": [{"name": "writable", "emptyDir": {}}],
    }
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(name: str, **ports: int) -> Document:
    """Return a Service for the pod of the same name."""
    listed = [{"name": key, "port": port, "targetPort": port} for key, port in ports.items()]
    spec = {"selector": {"app": name}, "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def redis(name: str, image: str) -> list[Document]:
    """Return a pod with a Redis without persistence, and its Service on port 6379."""
    command = ("redis-server", "--protected-mode", "no", "--dir", "/data")
    probe = {"exec": {"command": ["redis-cli", "ping"]}}
    return [pod(name, image, command=command, ready=probe, writable="/data"), service(name, redis=6379)]


def apply(cluster: Cluster, namespace: str, documents: Sequence[Document]) -> None:
    """Apply documents in a namespace. Raise CommandFailed if that fails."""
    cluster.apply(documents, "--namespace", namespace)


def wait_ready(cluster: Cluster, namespace: str, *names: str, patience_s: float = READY_S) -> None:
    """Wait until the pods are ready. Raise CommandFailed if they are not in time."""
    waited = [f"--timeout={patience_s:.0f}s", "--for=condition=Ready"]
    cluster.kubectl("wait", *waited, "--namespace", namespace, *(f"pod/{name}" for name in names))


CONNECT = """
import socket, sys, time
end = time.monotonic() + 20
while True:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
        break
    except OSError:
        if time.monotonic() > end:
            raise
        time.sleep(0.1)
"""


def run_in(cluster: Cluster, namespace: str, name: str, *command: str, given: str = "") -> str:
    """Run a command in a pod and return its output. Raise CommandFailed if it fails."""
    stdin = ("--stdin",) if given else ()
    return cluster.kubectl("exec", "--namespace", namespace, *stdin, name, "--", *command, given=given)


def wait_served(cluster: Cluster, namespace: str, name: str, service: str, port: int) -> None:
    """Wait until a pod with Python can connect to the Service; the node's rules change only after a pod is ready.

    Raise CommandFailed if it cannot connect in time.
    """
    run_in(cluster, namespace, name, "python3", "-c", CONNECT, service, str(port))
