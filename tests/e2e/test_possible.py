"""Missing prerequisites of a node are reported in one line before anything starts (tools/node-possible)."""

from __future__ import annotations

import subprocess

import pytest

from tests.program import ROOT

pytestmark = pytest.mark.own_node
POSSIBLE = str(ROOT / "tools" / "node-possible")
ALONE = ["unshare", "--mount", "--propagation", "private", "sh", "-euc"]
READ_ONLY = (
    "for each in /sys/fs/cgroup /sys/fs/cgroup/*; do "
    "! mountpoint -q $each || mount -o remount,bind,ro $each; done; "
)
NONE = "mount -t tmpfs none /sys/fs/cgroup; "
LACKS = {
    "root": (["setpriv", "--reuid=65534", "--clear-groups", POSSIBLE], "require root: sudo make e2e"),
    "namespaces": (["setpriv", "--bounding-set=-sys_admin", POSSIBLE], "run it privileged"),
    "control groups": ([*ALONE, NONE + POSSIBLE], "/sys/fs/cgroup has none"),
    "control groups to write to": ([*ALONE, READ_ONLY + POSSIBLE], "none can be created in /sys/fs/cgroup"),
}


@pytest.mark.parametrize(("command", "reason"), LACKS.values(), ids=LACKS.keys())
def test_missing_prerequisite_is_reported_in_one_line(command: list[str], reason: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("penstock: ")
    assert reason in line


def test_on_this_machine_it_is_possible() -> None:
    subprocess.run([POSSIBLE], check=True)
