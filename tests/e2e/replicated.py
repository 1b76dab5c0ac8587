"""Replicated stores in pods, configured as in docs/chart.md: three servers with Sentinels, or a Cluster.

Each pod has a certificate and a DNS name below the headless Service `store`; its files outlive a killed server.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.docs import replicated_page as page
from tests.e2e.pods import CONTAINER_SECURITY, SERVER, apply, pod, run_in, wait_ready
from tests.e2e.release import Release
from tests.kit.authority import Authority
from tests.kubernetes.cluster import CommandFailed, Document
from tests.servers import eventually

SERVICE = "store"
ADMIN = ("--tls", "--cacert", "/tls/ca.crt", "--user", "admin", "--pass", "admin-secret", "--no-auth-warning")
WATCH = ("--tls", "--cacert", "/tls/ca.crt", "--pass", "sentinel-secret", "--no-auth-warning", "-p", "26379")
BACK = "/data/back"
# a killed server stays down until the test restarts it: one that returns soon would remain the primary
START = f"""
cd /data
if test -e began; then until rm {BACK} 2> /dev/null; do sleep 0.1; done; else cp /config/* .; touch began; fi
until getent hosts redis-0.{SERVICE} > /dev/null; do sleep 0.2; done
exec redis-server "$@"
"""


def _pod(release: Release, name: str, own: dict[str, str], *words: str) -> list[Document]:
    """Return a pod and a ConfigMap with its files `own`."""
    made = pod(name, release.images.redis, command=("sh", "-c", START, "sh", *words), writable="/data")
    spec: dict[str, Any] = made["spec"]
    made["metadata"]["labels"][SERVICE] = "yes"
    spec |= {"hostname": name, "subdomain": SERVICE}
    spec["volumes"] += [
        {"name": "tls", "secret": {"secretName": "store-tls"}},
        {"name": "config", "configMap": {"name": name}},
    ]
    spec["containers"][0]["volumeMounts"] += [
        {"name": "tls", "mountPath": "/tls"},
        {"name": "config", "mountPath": "/config"},
    ]
    spec["containers"][0] |= {"securityContext": CONTAINER_SECURITY, "resources": SERVER}
    metadata = {"name": name}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": own}, made]


def _server(release: Release, name: str, *lines: str) -> list[Document]:
    configuration = "\n".join([page.file("# redis.conf"), *lines, ""])
    own = {"redis.conf": configuration, "users.acl": page.users()}
    return _pod(release, name, own, "redis.conf")


class Replicated:
    """A replicated store; its certificates are created in `folder`."""

    def __init__(self, release: Release, folder: Path, names: tuple[str, ...]) -> None:
        self.release = release
        self.names = names
        folder.mkdir()
        hosts = [f"{name}.{SERVICE}" for name in names]
        self.authority = Authority.create(folder, *hosts)

    @property
    def ca(self) -> Path:
        return self.authority.folder / "ca.pem"

    def _common(self) -> list[Document]:
        files = {"tls.crt": "chain.pem", "tls.key": "key.pem", "ca.crt": "ca.pem"}
        data = {
            name: base64.b64encode((self.authority.folder / path).read_bytes()).decode()
            for name, path in files.items()
        }
        spec = {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {SERVICE: "yes"},
            "ports": [{"name": "redis", "port": 6379}],
        }
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-tls"}, "data": data},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": spec},
        ]

    def start(self) -> None:
        """Create the pods without waiting for them."""
        documents = [document for name in self.names for document in self._documents(name)]
        apply(self.release.cluster, self.release.namespace, [*self._common(), *documents])

    def _documents(self, name: str) -> list[Document]:
        raise NotImplementedError

    def primary(self) -> str:
        """Return the name of the pod with the catalogue. Raise ConnectionError if it is unknown."""
        raise NotImplementedError

    def wait(self) -> None:
        wait_ready(self.release.cluster, self.release.namespace, *self.names)

    def cli(self, name: str, *words: str, options: tuple[str, ...] = ADMIN) -> str:
        command = ("redis-cli", "-h", f"{name}.{SERVICE}", *options, *words)
        try:
            return run_in(self.release.cluster, self.release.namespace, name, *command).strip()
        except CommandFailed as error:
            raise ConnectionError(error.said) from None

    def bring_back(self, name: str) -> bool:
        """Restart the killed server of a pod. Raise ConnectionError while its container is not running."""
        try:
            run_in(self.release.cluster, self.release.namespace, name, "touch", BACK)
        except CommandFailed as error:
            raise ConnectionError(error.said) from None
        return True

    def number_linked(self) -> int:
        """Return the number of replicas that follow the primary."""
        return self.cli(self.primary(), "info", "replication").count("state=online")

    def is_killed(self, name: str) -> None:
        """Note that the server of a pod was killed and does not answer for a while."""

    def pod(self, name: str) -> dict[str, Any]:
        found = self.release.cluster.items("pods", self.release.namespace)
        return next(each for each in found if each["metadata"]["name"] == name)


class BelowSentinels(Replicated):
    def __init__(self, release: Release, folder: Path) -> None:
        servers = tuple(f"redis-{i}" for i in range(3))
        super().__init__(release, folder, (*servers, *(f"sentinel-{i}" for i in range(3))))

    def _documents(self, name: str) -> list[Document]:
        if name.startswith("sentinel"):
            configuration = page.file("# sentinel.conf") + f"sentinel announce-ip {name}.{SERVICE}\n"
            return _pod(self.release, name, {"sentinel.conf": configuration}, "sentinel.conf", "--sentinel")
        follows = () if name == "redis-0" else (f"replicaof redis-0.{SERVICE} 6379",)
        return _server(self.release, name, f"replica-announce-ip {name}.{SERVICE}", *follows)

    def wait(self) -> None:
        super().wait()
        eventually(lambda: self.number_linked() == 2)
        eventually(lambda: all(self._is_settled(name) for name in self.names if "sentinel" in name))

    def _is_settled(self, name: str) -> bool:
        flat = self.cli(name, "sentinel", "master", "mymaster", options=WATCH).split()
        state = dict(zip(flat[::2], flat[1::2], strict=False))
        return (state.get("num-slaves"), state.get("num-other-sentinels")) == ("2", "2")

    def primary(self) -> str:
        reply = self.cli("sentinel-0", "sentinel", "get-master-addr-by-name", "mymaster", options=WATCH)
        return reply.split()[0].partition(".")[0]


class Cluster(Replicated):
    def __init__(self, release: Release, folder: Path) -> None:
        super().__init__(release, folder, tuple(f"redis-{i}" for i in range(6)))
        self._asked = self.names

    def _documents(self, name: str) -> list[Document]:
        more = page.file("# redis.conf of a Cluster, beside that").replace("redis-0", name)
        return _server(self.release, name, more)

    def wait(self) -> None:
        super().wait()
        eventually(lambda: "PONG" in self.cli(self.names[-1], "ping"))
        run_in(self.release.cluster, self.release.namespace, self.names[0], *page.creating().split())
        eventually(lambda: self.number_linked() == 1)

    def primary(self) -> str:
        slot = int(self.cli(self._alive(), "cluster", "keyslot", "ps:{registry}:epoch"))
        nodes = self.cli(self._alive(), "cluster", "nodes")
        for line in nodes.splitlines():
            _, place, flags, *rest = line.split()
            if "master" in flags and "fail" not in flags and _has(rest[5:], slot):
                return place.partition(",")[2].partition(".")[0]
        raise ConnectionError("no node has the catalogue")

    def _alive(self) -> str:
        """Return a node to query, other than the killed one."""
        return self._asked[0]

    def is_killed(self, name: str) -> None:
        self._asked = tuple(each for each in self.names if each != name)


def _has(ranges: list[str], slot: int) -> bool:
    for each in ranges:
        low, _, high = each.partition("-")
        if low.isdecimal() and int(low) <= slot <= int(high or low):
            return True
    return False
