"""What is measured: each module takes a Bench and gives findings (and `throughput` fills the peers' cells)."""

from __future__ import annotations

from benchmarks.measures import depth, idle, paced, store_alone, throughput

MEASURES = {
    "throughput": throughput.measure,
    "paced": paced.measure,
    "idle": idle.measure,
    "depth": depth.measure,
    "store": store_alone.measure,
}
