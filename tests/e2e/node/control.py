"""The control plane: the API server of the other tests, plus controllers and scheduler."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.node.health import says_ok
from tests.e2e.node.kubelet import NAME
from tests.e2e.node.machine import ADDRESS
from tests.e2e.node.place import Place
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.daemon import Daemon
from tools.kubernetes.programs import find

KUBELET, PROXY = f"system:node:{NAME}", "system:kube-proxy"
CONTROLLERS, SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
DNS = "dns"
USERS = {  # built-in roles of Kubernetes, except for DNS, which reads Services
    KUBELET: ("system:nodes",),
    PROXY: (),
    CONTROLLERS: (),
    SCHEDULER: (),
    DNS: ("system:masters",),
}
SERVICE = "10.96.0.1"  # address of the API server's Service, the first of the range
NAMES = (ADDRESS, SERVICE, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
OPTIONS = {
    "authorization-mode": "Node,RBAC",
    # pods connect to its Service, which forwards to the node
    "bind-address": "0.0.0.0",
    "advertise-address": ADDRESS,
    "endpoint-reconciler-type": "lease",
    "kubelet-preferred-address-types": "InternalIP",
}
FLEX_VOLUMES = "flex-volumes"
CONTROLLERS_PORT, SCHEDULER_PORT = 10257, 10259


class Control:
    def __init__(self, place: Place) -> None:
        folder = place.subfolder("control")
        self.api = ApiServer(folder, USERS, OPTIONS, NAMES)
        key, authority = folder / "service-accounts.key", folder / "ca.pem"
        self._controllers = self._component(
            "kube-controller-manager",
            CONTROLLERS,
            CONTROLLERS_PORT,
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={authority}",
            "--use-service-account-credentials",
            # the program creates this folder; the default would be on the host's disk
            f"--flex-volume-plugin-dir={place.folder / FLEX_VOLUMES}",
        )
        self._scheduler = self._component("kube-scheduler", SCHEDULER, SCHEDULER_PORT)

    def _component(self, program: str, user: str, port: int, *more: str) -> Daemon:
        flags = {
            "kubeconfig": self.kubeconfig(user),
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self.api.folder / program,
            "leader-elect": "false",
        }
        written = [f"--{name}={value}" for name, value in flags.items()]
        return Daemon(find(program), [*written, *more], self.api.folder)

    def kubeconfig(self, user: str) -> Path:
        return self.api.as_user(user).kubeconfig

    def start(self) -> None:
        """Start all components. Raise AssertionError with the end of a log if one fails."""
        self.api.start()
        self._controllers.start(lambda: says_ok(f"https://127.0.0.1:{CONTROLLERS_PORT}/healthz"))
        self._scheduler.start(lambda: says_ok(f"https://127.0.0.1:{SCHEDULER_PORT}/healthz"))

    def end(self) -> None:
        self._scheduler.end()
        self._controllers.end()
        self.api.end()
