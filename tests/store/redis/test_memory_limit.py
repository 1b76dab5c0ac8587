"""The memory limit of the machine, or of control groups of either version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from services.store.redis.memory_limit import MACHINE, MIB, MemoryLimit, half_of_rest, memory_limit

V1, V2 = "memory.limit_in_bytes", "memory.max"
NO_LIMIT = str((1 << 63) - 4096)  # as version 1 says it
LIMIT = 700 * MIB


def tree(root: Path, cgroup: str, mounts: str, limits: dict[str, str]) -> MemoryLimit:
    """Return the limit of a process with these files in `/proc/self`, and these ones below `/sys/fs/cgroup`."""
    for name, text in {"cgroup": cgroup, "mountinfo": mounts}.items():
        file = root / "proc/self" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name, text in limits.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return memory_limit(root)


def mount(kind: str, root: str = "/", where: str = "", options: str = "rw") -> str:
    return f"31 23 0:28 {root} /sys/fs/cgroup{where} rw - {kind} {kind} {options}\n"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "limits", "source"),
    [
        # version 2: a container that sees its own group as the top; a service of systemd; a limit further up
        ("0::/\n", mount("cgroup2"), {V2: str(LIMIT)}, V2),
        ("0::/a.slice/b\n", mount("cgroup2"), {f"a.slice/b/{V2}": str(LIMIT)}, f"a.slice/b/{V2}"),
        (
            "0::/a/b\n",
            mount("cgroup2"),
            {f"a/b/{V2}": "max", f"a/{V2}": str(LIMIT), "b/memory.max": "1"},
            f"a/{V2}",
        ),
        # version 1, beside version 2 without that controller; a container in the names of the machine
        (
            "4:memory:/a\n0::/\n",
            mount("cgroup", where="/memory", options="rw,memory") + mount("cgroup2", where="/unified"),
            {f"memory/{V1}": NO_LIMIT, f"memory/a/{V1}": str(LIMIT)},
            f"memory/a/{V1}",
        ),
        (
            "7:cpu:/\n4:memory:/docker/1f\n",
            mount("cgroup", root="/docker/1f", where="/memory", options="rw,memory"),
            {f"memory/{V1}": str(LIMIT)},
            f"memory/{V1}",
        ),
    ],
)
def test_lowest_limit_counts(
    tmp_path: Path, cgroup: str, mounts: str, limits: dict[str, str], source: str
) -> None:
    assert tree(tmp_path, cgroup, mounts, limits) == MemoryLimit(LIMIT, f"/sys/fs/cgroup/{source}")


@pytest.mark.parametrize("limit", ["max", NO_LIMIT])
def test_machine_is_the_limit_without_control_groups(tmp_path: Path, limit: str) -> None:
    octets = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert tree(tmp_path, "0::/\n", mount("cgroup2"), {V2: limit}) == MemoryLimit(octets, MACHINE)


def test_memory_of_other_processes_is_subtracted() -> None:
    limit = MemoryLimit(LIMIT, "x")
    share = half_of_rest(limit, 480 * MIB, 32 * MIB)
    assert (share.octets, share.is_short) == (110 * MIB, False)
    assert share.reason == "half of 700 MiB of x less 480 MiB for other processes"
    share = half_of_rest(limit, 680 * MIB, 32 * MIB)
    assert (share.octets, share.is_short) == (32 * MIB, True)


@pytest.fixture
def group() -> Iterator[Path]:
    """Create a real control group with a limit, and one without limit in it."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    path = next((path for _, names, path in lines if "memory" in names.split(",")), None)
    above = Path(f"/sys/fs/cgroup/memory{path}" if path is not None else f"/sys/fs/cgroup{lines[0][2]}")
    file = V1 if path is not None else V2
    made = above / f"penstock-test-{uuid4().hex}"
    try:
        (made / "within").mkdir(parents=True)
        (made / file).write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no control groups can be made: {error}")
    yield made / file
    (made / "within").rmdir()
    made.rmdir()


def test_store_in_a_control_group_takes_half_of_its_limit(group: Path, tmp_path: Path) -> None:
    entered = group.parent / "within" / "cgroup.procs"
    program = f"""
import os
from pathlib import Path
open({str(entered)!r}, "w").write(str(os.getpid()))
from services.store.redis.embedded import EmbeddedSettings, EmbeddedStore
words = EmbeddedStore(EmbeddedSettings(Path({str(tmp_path)!r}))).command()
print(words[words.index("--maxmemory") + 1])
"""
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert int(output) == LIMIT // 2
