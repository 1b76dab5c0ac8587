"""The measures: each module takes a Bench and returns findings (and `throughput` fills the peers' cells)."""

from __future__ import annotations

from benchmarks.measures import (
    around,
    delivery,
    depth,
    fanout,
    idle,
    paced,
    rqp,
    rqp_cast,
    store_alone,
    subscriptions,
    throughput,
)

MEASURES = {
    "idle": idle.measure,  # first: memory that a load used and freed would hide the need of connections
    "throughput": throughput.measure,
    "paced": paced.measure,
    "depth": depth.measure,
    "store": store_alone.measure,
    "fanout": fanout.measure,
    "subscriptions": subscriptions.measure,
    "delivery": delivery.measure,
    "rqp": rqp.measure,
    "cast": rqp_cast.measure,
    "around": around.measure,
}
