"""Declare prometheus_client's metrics of a process."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "every process"
OF_ALL = "for an edge with several workers the sum of its processes"
NEAREST = "for an edge with several workers of the process nearest its limit"

CPU = counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", more=OF_ALL)
STARTED = gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
RESIDENT = gauge(
    "process_resident_memory_bytes",
    "Resident memory size in bytes.",
    more=f"{OF_ALL}; shared pages count for each",
)
VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", more=OF_ALL)
OPEN_FDS = gauge("process_open_fds", "Number of open file descriptors.", more=NEAREST)
MAX_FDS = gauge("process_max_fds", "Maximum number of open file descriptors.", more=NEAREST)
PYTHON = gauge(
    "python_info",
    "Python platform information",
    *(Label(name, "1") for name in ("implementation", "major", "minor", "patchlevel", "version")),
)
