"""State of the host that a cluster could change or leave behind, read on the host's own network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.node.place import CGROUPS, PREFIX, is_held
from tests.servers import eventually

PATIENCE_S = 20.0  # longest time until the kernel has removed unused interfaces and mounts
_NETWORK = os.open("/proc/thread-self/ns/net", os.O_RDONLY)  # opened before any test enters another network
SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/netfilter/nf_conntrack_max",
)
FOLDERS = (
    "/etc/cni",
    "/opt/cni",
    "/opt/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib",
    "/var/log",
    "/run/netns",
)
Sight = dict[str, set[str]]


def state() -> Sight:
    return {
        "mounts": {
            line.split(" - ")[0].split()[4] for line in _lines(Path("/proc/self/mountinfo").read_text())
        },
        "links": {line.split(":")[1] for line in _lines(_on_its_network("ip", "-oneline", "link"))},
        "routes": set(_lines(_on_its_network("ip", "route"))),
        "rules": set(_rules()),
        "settings": {f"{name} {_read(Path('/proc/sys') / name)}" for name in SETTINGS},
        "control groups": _control_groups(),
        "folders": {str(path) for folder in FOLDERS for path in Path(folder).glob("*")},
    }


def check_it_is_as(before: Sight) -> None:
    """Check that the host is in the same state as before. Raise AssertionError with the differences."""
    changes: Sight = {}

    def is_as_before() -> bool:
        now = state()
        changes.clear()
        changes.update({kind: before[kind] ^ now[kind] for kind in before if before[kind] != now[kind]})
        return not changes

    try:
        eventually(is_as_before, PATIENCE_S)
    except AssertionError:
        raise AssertionError(f"not as before: {changes}") from None


def processes(mark: str) -> list[str]:
    """Return command lines of processes with `mark` in command line, environment or control group names."""
    return [found for folder in Path("/proc").glob("[0-9]*") if (found := _marked(folder, mark))]


def _marked(folder: Path, mark: str) -> str:
    try:
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        text = command + (folder / "environ").read_text("utf-8", "replace") + (folder / "cgroup").read_text()
    except OSError:
        return ""  # the process has ended
    # zombies have an empty command line
    return command if mark in text and int(folder.name) != os.getpid() else ""


def _control_groups() -> set[str]:
    """Return control groups of nodes, except those of other running clusters."""
    found = [*CGROUPS.glob(f"{PREFIX}*"), *CGROUPS.glob(f"*/{PREFIX}*")]
    return {str(path) for path in found if not is_held(Path(tempfile.gettempdir()) / path.name)}


def _rules() -> Iterator[str]:
    if shutil.which("iptables-save"):
        yield from (line for line in _lines(_on_its_network("iptables-save")) if line.startswith("-A"))


def _on_its_network(*command: str) -> str:
    entered = ["nsenter", f"--net=/proc/self/fd/{_NETWORK}", *command]
    return subprocess.run(entered, check=True, capture_output=True, text=True, pass_fds=[_NETWORK]).stdout


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else "-"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
