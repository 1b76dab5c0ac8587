"""The kubelet, and the proxy that implements Services by iptables rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.node.containers import PODS
from tests.e2e.node.health import says_ok
from tests.e2e.node.machine import ADDRESS, Machine
from tests.e2e.node.place import Place
from tests.kubernetes.daemon import Daemon
from tools.kubernetes.programs import find

NAME = "node"
HEALTH_PORT, PROXY_HEALTH_PORT = 10248, 10256


class Kubelet:
    def __init__(self, place: Place, machine: Machine, kubeconfig: Path, runtime: Path) -> None:
        """Configure the kubelet; `runtime` is the socket of containerd."""
        folder = place.subfolder("kubelet")
        (folder / "resolv.conf").touch()
        configured = folder / "config.json"
        configured.write_text(json.dumps(_kubelet(folder, place.cgroup, runtime)), "utf-8")
        flags = {
            "kubeconfig": kubeconfig,
            "config": configured,
            "root-dir": folder,
            "hostname-override": NAME,
            "node-ip": ADDRESS,
        }
        written = [f"--{name}={value}" for name, value in flags.items()]
        self.daemon = Daemon(find("kubelet"), written, place.folder, machine.command)

    def start(self) -> None:
        self.daemon.start(lambda: says_ok(f"http://127.0.0.1:{HEALTH_PORT}/healthz"))


def _kubelet(folder: Path, cgroup: str, runtime: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "healthzPort": HEALTH_PORT,
        "containerRuntimeEndpoint": f"unix://{runtime}",
        "volumePluginDir": str(folder / "plugins"),
        # the network is isolated
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        # pods resolve only names of this cluster
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        # works on any host, beside other programs
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failSwapOn": False,
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "evictionHard": {"memory.available": "1%", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
    }


class Proxy:
    def __init__(self, place: Place, machine: Machine, kubeconfig: Path) -> None:
        configured = place.folder / "proxy.json"
        configured.write_text(json.dumps(_proxy(kubeconfig)), "utf-8")
        flags = [f"--config={configured}"]
        self.daemon = Daemon(find("kube-proxy"), flags, place.folder, machine.command)

    def start(self) -> None:
        self.daemon.start(lambda: says_ok(f"http://127.0.0.1:{PROXY_HEALTH_PORT}/healthz"))


def _proxy(kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "mode": "iptables",
        "iptables": {"minSyncPeriod": "100ms"},  # there are few rules, and tests wait for them
        "clusterCIDR": PODS,
        "hostnameOverride": NAME,
        "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        # these settings are shared with the host
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
