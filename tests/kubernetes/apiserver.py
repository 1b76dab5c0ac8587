"""Run a real Kubernetes API server and its etcd, on free ports of loopback, in a temporary folder.

Schemas, CEL, defaults, RBAC, admission, watches and tokens are real. No controllers run: pods are not scheduled,
dependents of deleted owners stay, the roles `view`, `edit` and `admin` are empty because they are not aggregated, and
namespaces neither get a `default` ServiceAccount nor are emptied (`namespaces.py` does both). Tests that need
controllers run on a node.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Self

from tests.kit.authority import Authority
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.daemon import Daemon
from tests.servers import free_port
from tools.kubernetes.programs import find

HOST = "127.0.0.1"
ANSWER_TIMEOUT_S = 10.0
ADMIN = "admin"
Users = Mapping[str, Sequence[str]]  # groups by name


class Etcd:
    """A single etcd member, used by the API server only."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._data = folder / "etcd"
        url, peers = f"http://{HOST}:{self.port}", f"http://{HOST}:{free_port()}"
        flags = {
            "name": "tests",
            "data-dir": str(self._data),
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"tests={peers}",
        }
        # the data are deleted with the folder, so they need not survive a power cut
        self._daemon = Daemon(find("etcd"), [*_flags(flags), "--unsafe-no-fsync"], folder)

    def start(self) -> None:
        self._daemon.start(self._is_healthy)

    def _is_healthy(self) -> bool:
        with closing(HTTPConnection(HOST, self.port, timeout=ANSWER_TIMEOUT_S)) as connection:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200

    def end(self) -> None:
        """Stop etcd and delete its data: its write-ahead log takes 128 MB from the start."""
        self._daemon.end()
        shutil.rmtree(self._data, ignore_errors=True)


class ApiServer:
    """An API server with users, each with a token. `options` are further or changed flags.

    `names` are those by which it is reached, besides loopback.
    """

    def __init__(
        self, folder: Path, users: Users, options: Mapping[str, str] | None = None, names: Sequence[str] = ()
    ) -> None:
        """Prepare the server. Raises NotBuilt with instructions if a program is missing."""
        self.folder = folder
        self.port = free_port()
        self._authority = Authority.create(folder, *names)
        self._views: list[Cluster] = []
        self._seen: dict[tuple[str, int], Cluster] = {}  # by user and port
        self._tokens = {user: secrets.token_hex(16) for user in (ADMIN, *users)}
        self._trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        self.etcd = Etcd(folder)
        self._write_users({**users, ADMIN: ("system:masters",)})
        self._write_key()
        self.daemon = Daemon(find("kube-apiserver"), _flags({**self._options(), **(options or {})}), folder)

    def _options(self) -> dict[str, str]:
        key = str(self.folder / "service-accounts.key")
        return {
            "etcd-servers": f"http://{HOST}:{self.etcd.port}",
            "bind-address": HOST,
            "secure-port": str(self.port),
            "tls-cert-file": str(self.folder / "chain.pem"),
            "tls-private-key-file": str(self.folder / "key.pem"),
            "token-auth-file": str(self.folder / "users.csv"),
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "service-cluster-ip-range": "10.96.0.0/16",
            # the Service `kubernetes` may not lead to a loopback address, and no client here uses it
            "advertise-address": HOST,
            "endpoint-reconciler-type": "none",
            # otherwise privileged pods are refused as malformed, before Pod Security admission sees them
            "allow-privileged": "true",
        }

    def _write_users(self, users: Users) -> None:
        lines = (f'{self._tokens[name]},{name},{name},"{",".join(groups)}"' for name, groups in users.items())
        (self.folder / "users.csv").write_text("\n".join(lines) + "\n", "utf-8")

    def _write_key(self) -> None:
        issued = self._authority.ca.issue_cert("service-accounts")
        issued.private_key_pem.write_to_path(str(self.folder / "service-accounts.key"))

    def start(self) -> Self:
        """Return once /readyz succeeds. Raises AssertionError with the end of a log."""
        self.etcd.start()
        self.daemon.start(self._is_ready)
        return self

    def _is_ready(self) -> bool:
        with closing(
            HTTPSConnection(HOST, self.port, timeout=ANSWER_TIMEOUT_S, context=self._trust)
        ) as connection:
            connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {self._tokens[ADMIN]}"})
            return connection.getresponse().status == 200

    def restart(self) -> None:
        """Kill the server and start it on the same port: watches are cut, data stay."""
        self.daemon.end()
        self.daemon.start(self._is_ready)

    def end(self) -> None:
        """Kill the server: after SIGTERM it would wait a minute for open watches."""
        for cluster in self._views:
            cluster.api.close()
        self.daemon.end()
        self.etcd.end()

    # Users

    def as_user(self, name: str = ADMIN, port: int = 0) -> Cluster:
        """Return the cluster as seen by a user, through another port than the server's if one is given."""
        if (name, port) not in self._seen:
            self._seen[name, port] = self._seen_by(f"{name}{port or ''}", self._tokens[name], port)
        return self._seen[name, port]

    def as_service_account(self, namespace: str, name: str, port: int = 0) -> Cluster:
        """Return the cluster as seen by a service account with a token of an hour, as in a pod."""
        return self._seen_by(f"{namespace}-{name}", self.as_user().new_token(namespace, name), port)

    def _seen_by(self, name: str, token: str, port: int) -> Cluster:
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        path = home / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(self._kubeconfig(token, port or self.port)), "utf-8")
        self._views.append(Cluster(path, home))
        return self._views[-1]

    def _kubeconfig(self, token: str, port: int) -> dict[str, object]:
        """Return a self-contained kubeconfig, which may be copied anywhere on this machine."""
        authority = base64.b64encode((self.folder / "ca.pem").read_bytes()).decode()
        cluster = {"server": f"https://{HOST}:{port}", "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "tests", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
            "current-context": "tests",
        }


def _flags(options: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
