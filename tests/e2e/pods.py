"""Pods and Services for tests, as "restricted" namespaces admit them, and what one does with them."""

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
SERVER = {
    "requests": {"cpu": "100m"}
}  # resources: without any it gets a 150th of a processor that edges use as well
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}}
IDLE = (
    "sh",
    "-c",
    "trap exit TERM; while :; do sleep 1 & wait $!; done",
)  # a first process must say what ends it


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
    """Its label `app` is its name; `ready` is its readiness probe, `writable` the one folder that it may write to."""
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
    """Of the pod of that name."""
    listed = [{"name": key, "port": port, "targetPort": port} for key, port in ports.items()]
    spec = {"selector": {"app": name}, "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def redis(name: str, image: str) -> list[Document]:
    """A store without a disk, and its Service, on port 6379."""
    command = ("redis-server", "--protected-mode", "no", "--dir", "/data")
    probe = {"exec": {"command": ["redis-cli", "ping"]}}
    return [pod(name, image, command=command, ready=probe, writable="/data"), service(name, redis=6379)]


def apply(cluster: Cluster, namespace: str, documents: Sequence[Document]) -> None:
    """Raises CommandFailed."""
    cluster.apply(documents, "--namespace", namespace)


def wait_ready(cluster: Cluster, namespace: str, *names: str, patience_s: float = READY_S) -> None:
    """Raises CommandFailed."""
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
    """What it prints, run in that pod. Raises CommandFailed."""
    stdin = ("--stdin",) if given else ()
    return cluster.kubectl("exec", "--namespace", namespace, *stdin, name, "--", *command, given=given)


def wait_served(cluster: Cluster, namespace: str, name: str, service: str, port: int) -> None:
    """Until that pod, whose image has Python, reaches the Service: a node's rules follow when a pod is ready.

    Raises CommandFailed.
    """
    run_in(cluster, namespace, name, "python3", "-c", CONNECT, service, str(port))
