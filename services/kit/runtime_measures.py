"""What prometheus_client tells of a process by itself (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "every process, but no edge that has several workers"

GENERATION = Label("generation", "3")

CPU = counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
STARTED = gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
OPEN_FDS = gauge("process_open_fds", "Number of open file descriptors.")
MAX_FDS = gauge("process_max_fds", "Maximum number of open file descriptors.")
PYTHON = gauge(
    "python_info",
    "Python platform information",
    *(Label(name, "1") for name in ("implementation", "major", "minor", "patchlevel", "version")),
)
GC_COLLECTED = counter("python_gc_objects_collected_total", "Objects collected during gc", GENERATION)
GC_UNCOLLECTABLE = counter(
    "python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", GENERATION
)
GC_COLLECTIONS = counter(
    "python_gc_collections_total", "Number of times this generation was collected", GENERATION
)
