"""Sum up CPU time, memory and open files of a process and its children (docs/metrics.md)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client import Metric, ProcessCollector
from prometheus_client.registry import Collector

from services.kit.metrics import runtime_measures as measures

SUMMED = {one.name.removesuffix("_total") for one in (measures.CPU, measures.RESIDENT, measures.VIRTUAL)}
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
TRIES = 5  # until no child exits during a reading


class ProcessGroup(Collector):
    """Metrics as of one process: the leader's start, sums, and open files of the process nearest its limit."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._current = leader
        self._one = ProcessCollector(pid=lambda: self._current, registry=None)
        self._ticks = 0  # CPU time at the last reading

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the group."""
        dead_s = self._dead_s()
        for _ in range(TRIES):
            of_leader = self._read(self._leader)
            of_all = [_values(of_leader), *(_values(self._read(pid)) for pid in self._children())]
            before_s, dead_s = dead_s, self._dead_s()
            if before_s == dead_s:  # otherwise a child was counted twice, or not at all
                break
        sums = self._summed_up(of_all, dead_s)
        for name, family in of_leader.items():
            family.samples = [
                sample._replace(value=sums.get(name, sample.value)) for sample in family.samples
            ]
            yield family

    def _summed_up(self, of_all: Sequence[Mapping[str, float]], dead_s: float) -> dict[str, float]:
        sums = defaultdict[str, float](float)
        for values in of_all:
            for name in SUMMED & values.keys():
                sums[name] += values[name]
        cpu, open_fds, max_fds = "process_cpu_seconds", measures.OPEN_FDS.name, measures.MAX_FDS.name
        if cpu in sums:
            # In whole ticks: a sum in another order may be slightly less, which Prometheus takes for a restart.
            ticks = round((sums[cpu] + dead_s) * TICKS_A_SECOND)
            self._ticks = max(self._ticks, ticks)
            sums[cpu] = self._ticks / TICKS_A_SECOND
        limited = [values for values in of_all if values.get(max_fds)]
        if limited:
            nearest = max(limited, key=lambda values: values[open_fds] / values[max_fds])
            sums |= {name: nearest[name] for name in (open_fds, max_fds)}
        return sums

    def _read(self, pid: int) -> dict[str, Metric]:
        """Return the metrics of a process; nothing if it has exited."""
        self._current = pid
        return {family.name: family for family in self._one.collect()}

    def _children(self) -> list[int]:
        try:
            return [
                int(pid) for pid in (self._proc / "task" / str(self._leader) / "children").read_text().split()
            ]
        except OSError:
            return []

    def _dead_s(self) -> float:
        """Return the CPU time in seconds of the leader's children that were reaped."""
        try:
            fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[13]) + int(fields[14])) / TICKS_A_SECOND  # cutime, cstime: proc_pid_stat(5)

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self._leader}")


def _values(families: Mapping[str, Metric]) -> dict[str, float]:
    return {name: family.samples[0].value for name, family in families.items()}
