"""Test resource metrics of a process and its children, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.kit.workers.process_group import ProcessGroup
from tests.kit.harness import eventually

BURNT_TICKS = 30
BURNT_S = BURNT_TICKS / os.sysconf("SC_CLK_TCK")
OPENED, LIMIT = 50, 100
LEADER = f"""
import os, resource, signal
if not os.fork():
    resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
    files = [open("/dev/null") for _ in range({OPENED})]
    filled = b"x" * (64 << 20)
    while sum(map(int, open("/proc/self/stat").read().rpartition(")")[2].split()[11:13])) < {BURNT_TICKS}:
        pass
    print("burnt", flush=True)
    signal.pause()
os.wait()
signal.pause()
"""
CPU, RESIDENT = "process_cpu_seconds_total", "process_resident_memory_bytes"


@pytest.fixture
def leader() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", LEADER], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"burnt\n"
        yield process.pid
        for pid in (*children(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def read_samples(group: ProcessGroup) -> dict[str, float]:
    return {sample.name: sample.value for family in group.collect() for sample in family.samples}


def memory(*pids: int) -> int:
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def test_group_metrics_are_those_of_one_process(leader: int) -> None:
    (child,) = children(leader)
    values = read_samples(ProcessGroup(leader))
    assert values[CPU] >= BURNT_S
    assert values[RESIDENT] == pytest.approx(memory(leader, child), rel=0.1)
    assert values[RESIDENT] > 64 << 20
    # the descriptors of the process with the fewest left
    assert values["process_open_fds"] == len(os.listdir(f"/proc/{child}/fd")) > OPENED
    assert values["process_max_fds"] == LIMIT


def test_cpu_time_of_exited_children_counts(leader: int) -> None:
    """Check that CPU time of exited children counts.

    Otherwise the sum would fall, and Prometheus would take that for a counter reset.
    """
    before = read_samples(ProcessGroup(leader))
    os.kill(*children(leader), signal.SIGKILL)
    eventually(lambda: not children(leader))
    after = read_samples(ProcessGroup(leader))  # the reporting process may have restarted, too
    assert after[CPU] >= before[CPU]
    assert after[RESIDENT] == pytest.approx(memory(leader), rel=0.1)
    assert after["process_start_time_seconds"] == before["process_start_time_seconds"]
    assert after["process_max_fds"] > LIMIT


def test_exited_process_has_no_metrics() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert read_samples(ProcessGroup(process.pid)) == {}
