"""Describe the machine of a run, with the cost of one fsync on it."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PROBES = 100
PROBE_BYTES = 4096
STALLS_S = 8.0  # how long the disk is watched for stalls
STALL_MS = 10.0
STALLS_PAUSE_S = 0.0005  # between two fdatasyncs, as in a paced measure
IDLE_LOAD = 0.7  # above it, another program was running
SETTLE_TIMEOUT_S = 20.0
SETTLE_STEP_S = 0.5


@dataclass(frozen=True, slots=True)
class Machine:
    processor: str
    cores: int
    memory_gib: float
    system: str
    kernel: str
    python: str
    filesystem: str
    fdatasync_us: float  # median of an append of 4 KiB and its fdatasync, one at a time
    load: float  # average of the last minute, before the run
    stalled: float = 0.0  # share of the time that fdatasyncs of more than STALL_MS took, before the run

    def __str__(self) -> str:
        stalls = f", {self.stalled:.1%} of the time in ones over {STALL_MS:.0f} ms" if self.stalled else ""
        busy = f"; not idle when the run began (load {self.load:.1f})" if self.load > IDLE_LOAD else ""
        return (
            f"{self.cores} cores of {self.processor}, {self.memory_gib:.0f} GiB, {self.system}, Linux {self.kernel}, "
            f"Python {self.python}; {self.filesystem}, one fdatasync {self.fdatasync_us:.0f} us{stalls}{busy}"
        )


def describe(folder: Path, watched_s: float = STALLS_S) -> Machine:
    """Describe this machine; the disk is that of `folder`, and is watched for stalls for `watched_s` seconds."""
    return Machine(
        processor=_field("/proc/cpuinfo", "model name", ":") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        system=(_field("/etc/os-release", "PRETTY_NAME", "=") or platform.system()).strip('"'),
        kernel=platform.release(),
        python=platform.python_version(),
        filesystem=filesystem_of(folder),
        fdatasync_us=round(fdatasync_us(folder), 1),
        load=round(os.getloadavg()[0], 2),
        stalled=round(stalled(folder, watched_s), 4),
    )


def _field(path: str, name: str, separator: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    pairs = (line.partition(separator) for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), None)


def filesystem_of(folder: Path) -> str:
    """Return the type of the file system that holds `folder`: that of the longest mount point above it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(mount[1]), mount[2]) for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    return max(above, default=(0, "unknown"))[1]


def fdatasync_us(folder: Path) -> float:
    """Return the median microseconds of appending 4 KiB with fdatasync."""
    path = folder / "fdatasync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(PROBES):
            start = time.perf_counter()
            file.write(bytes(PROBE_BYTES))
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1e6)
    path.unlink()
    return statistics.median(times)


def stalled(folder: Path, seconds: float) -> float:
    """Return the share of time in fdatasyncs longer than STALL_MS: such stalls show up in every p99 of disk waits."""
    path, lost = folder / "stalls", 0.0
    begin = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        while (start := time.perf_counter()) < begin + seconds:
            file.write(bytes(PROBE_BYTES))
            os.fdatasync(file.fileno())
            took = time.perf_counter() - start
            lost += took if took * 1000 > STALL_MS else 0.0
            time.sleep(STALLS_PAUSE_S)
    path.unlink()
    return lost / (time.perf_counter() - begin)


def current_commit() -> str:
    """Return the measured commit, with `+` if the tree differs from it; "" outside of git."""
    here = Path(__file__).parent
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=here,
            capture_output=True,
            timeout=10,
        )
    except OSError:
        return ""
    return shown.stdout.decode().strip()


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its live children, to the nanosecond where Linux reports it."""
    return sum(map(_cpu_s, tree(pid)))


def _cpu_s(pid: int) -> float:
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
        return sum(int(thread.split()[0]) for thread in threads) / 1e9
    except (OSError, IndexError):  # a kernel without schedstat counts ticks of 10 ms
        return sum(map(int, _stat(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid: int) -> float:
    """Return the resident memory of a process and its children, KiB."""
    pages = sum(int(_stat(each)[21]) for each in tree(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def settled_kib(pid: int) -> float:
    """Return the resident KiB once it is stable (changes below 1 % within half a second)."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    last = resident_kib(pid)
    while time.monotonic() < deadline:
        time.sleep(SETTLE_STEP_S)
        now = resident_kib(pid)
        if abs(now - last) <= 0.01 * last:
            return now
        last = now
    return last


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name: the third field has index 0."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(pid: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [pid, *(each for child in children for each in tree(child))]
