"""A store outside a release (docs/chart.md): a server with TLS, an administrator and a user for edges."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.pods import SERVER, pod, service
from tests.e2e.release import Release
from tests.kit.authority import Authority
from tests.kubernetes.cluster import CHART

PORT = 6380
FILES = {"tls.crt": "chain.pem", "tls.key": "key.pem", "ca.crt": "ca.pem"}
PASSWORD = "secret"  # as on the page
OPTIONS = {
    "port": "0",
    "tls-port": str(PORT),
    "tls-cert-file": "/files/tls.crt",
    "tls-key-file": "/files/tls.key",
    "tls-ca-cert-file": "/files/ca.crt",
    "tls-auth-clients": "no",
    "aclfile": "/files/users.acl",
    "dir": "/data",
    "appendonly": "yes",
    "appendfsync": "always",
    "maxmemory": "256mb",
    "maxmemory-policy": "noeviction",
}
ALL_RIGHTS = "~* &* +@all"


def start_store(release: Release, name: str, folder: Path) -> None:
    """Start the store in the namespace of the release; write its certificate authority to `ca.crt` in `folder`."""
    own = folder / name
    own.mkdir()
    Authority.create(own, name)
    (folder / "ca.crt").write_bytes((own / "ca.pem").read_bytes())
    rights = (CHART / "files" / "edge.acl").read_text().strip()
    users = (
        f"user default off resetpass {ALL_RIGHTS}\n"
        f"user admin on >{PASSWORD} {ALL_RIGHTS}\n"
        f"user edge {rights} >{PASSWORD}\n"
    )
    files = {"users.acl": users, **{key: (own / file).read_text() for key, file in FILES.items()}}
    metadata = {"name": f"{name}-files"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": files}
    flags = [word for option, value in OPTIONS.items() for word in (f"--{option}", value)]
    probe = {"tcpSocket": {"port": PORT}}
    made = pod(name, release.images.redis, command=["redis-server", *flags], ready=probe, writable="/data")
    made["spec"]["containers"][0]["resources"] = SERVER
    made["spec"]["volumes"].append({"name": "files", "secret": {"secretName": f"{name}-files"}})
    made["spec"]["containers"][0]["volumeMounts"].append({"name": "files", "mountPath": "/files"})
    release.apply(secret, made, service(name, redis=PORT))
    release.wait_ready("pod", name)
