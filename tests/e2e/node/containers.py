"""containerd, the pods' network, and images loaded without a registry."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

from services.system.pdeathsig import die_with_parent
from tests.e2e.node.machine import Machine
from tests.e2e.node.place import Place
from tests.kubernetes.daemon import Daemon
from tools.images.storage import OWN_MOUNTS
from tools.kubernetes.programs import find

PODS = "10.244.0.0/24"
PLUGINS = "/usr/lib/cni"
IMPORT_TIMEOUT_S = 300.0
# Only what differs from the defaults. Values are written as JSON, which is valid TOML here.
CONFIGURATION = """\
version = 2
root = {root}
state = {state}
[grpc]
address = {socket}
[plugins."io.containerd.internal.v1.opt"]
path = {opt}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = {pause}
# a container in a container may not have these
restrict_oom_score_adj = true
disable_hugetlb_controller = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {plugins}
conf_dir = {networks}
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = {runc}
SystemdCgroup = false
"""


class Containers:
    def __init__(self, place: Place, machine: Machine, pause: str) -> None:
        """Configure containerd; `pause` is the image of each pod's first container."""
        self._folder = place.subfolder("containerd")
        self.socket = self._folder / "containerd.sock"
        self._write_network(pause_folder := place.subfolder("networks"), place.subfolder("addresses"))
        self._write_configuration(pause, pause_folder)
        flags = ["--config", str(self._folder / "config.toml"), "--log-level", "warn"]
        self.daemon = Daemon(find("containerd"), flags, place.folder, machine.command)

    def _write_configuration(self, pause: str, networks: Path) -> None:
        values = {
            "root": self._folder / "root",
            "state": self._folder / "state",
            "opt": self._folder / "opt",
            "socket": self.socket,
            "pause": pause,
            "plugins": PLUGINS,
            "networks": networks,
            "runc": find("runc"),
        }
        written = {name: json.dumps(str(value)) for name, value in values.items()}
        (self._folder / "config.toml").write_text(CONFIGURATION.format(**written), "utf-8")

    def _write_network(self, folder: Path, addresses: Path) -> None:
        """Configure a point-to-point interface per pod, with routing by the node.

        On a bridge, answers of Services could bypass the node's address translation where the kernel does not pass
        bridged packets to iptables.
        """
        ranges = {"subnet": PODS}, {"dst": "0.0.0.0/0"}
        kept = {
            "type": "host-local",
            "ranges": [[ranges[0]]],
            "routes": [ranges[1]],
            "dataDir": str(addresses),
        }
        plugins = [{"type": "ptp", "ipam": kept}]
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": plugins}
        (folder / "pods.conflist").write_text(json.dumps(network), "utf-8")

    def start(self) -> None:
        """Start containerd. Raise AssertionError with the end of its log if that fails."""
        self.daemon.start(lambda: self._ctr("version").returncode == 0)

    def load(self, images: Sequence[str]) -> None:
        """Load images from buildah's storage. Raise CalledProcessError if that fails."""
        save = [*OWN_MOUNTS, "podman", "save", "--quiet", "--multi-image-archive", *images]
        dies_with_us = partial(die_with_parent, os.getpid())
        with subprocess.Popen(save, stdout=subprocess.PIPE, preexec_fn=dies_with_us) as saving:
            imported = self._ctr("images", "import", "-", archive=saving.stdout)
        if saving.returncode:
            raise subprocess.CalledProcessError(saving.returncode, save)
        imported.check_returncode()

    def images(self) -> list[str]:
        """Return the names of the loaded images."""
        return self._ctr("images", "list", "--quiet").stdout.split()

    def kill(self, container: str) -> bool:
        """Kill the first process of a container at once, as a forced deletion of its pod would let it drain.

        Return False if it has already ended. Raise CalledProcessError if that fails.
        """
        done = self._ctr("tasks", "kill", "--signal", "SIGKILL", container)
        if "no running task found" in done.stderr:
            return False
        done.check_returncode()
        return True

    def _ctr(self, *words: str, archive: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
        command = [find("ctr"), "--address", str(self.socket), "--namespace", "k8s.io", *words]
        return subprocess.run(
            command, stdin=archive, capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S
        )
