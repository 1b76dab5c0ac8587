"""What the operator counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "the operator"
LOOK_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

KIND = Label("kind", "kinds, 5")
RESULT = Label("result", "2")
OF_QUEUE = (Label("namespace", "namespaces"), Label("name", "1, and 1 of each that is named"))
EXPORTED = "Prometheus shows the label `namespace` as `exported_namespace` where the scrape gives one, as monitors do"

LOOKS = counter(
    "penstock_operator_looks_total",
    "Resources looked at, by what came of it",
    KIND,
    RESULT,
    more="`done`, `failed` (and tried again)",
)
LOOK_SECONDS = histogram(
    "penstock_operator_look_seconds", "Time to look at one", KIND, buckets=LOOK_BUCKETS_S
)
DEPTH = gauge(
    "penstock_operator_queue_depth",
    "Messages that wait or are out, of the Queues of a namespace, at the last look",
    *OF_QUEUE,
    unit="messages",
    more=f"`name` is `_other`, the rest of the namespace, but for Queues that are named; {EXPORTED}",
)
STATUS_PATCHES = counter("penstock_operator_status_patches_total", "Statuses written", KIND)
EVENTS = counter(
    "penstock_operator_events_total", "Events written, by reason", Label("reason", "reasons, some 20")
)
RESOURCES = gauge(
    "penstock_operator_resources",
    "Resources, by the reason of Ready",
    KIND,
    Label("reason", "reasons, some 20"),
)
STORE_UP = gauge(
    "penstock_operator_store_up",
    "Whether the store can be used: 1, or 0",
    more="all domains of it, and it refuses no writes as it is out of memory or read-only",
)
RESTORED = counter(
    "penstock_operator_store_restored_total",
    "Times the store held another data set than before",
    more="an empty one that was set up anew, as a rule",
)
REPLACED = gauge(
    "penstock_operator_store_replaced_time_seconds",
    "When the store was last found to hold another data set than before",
    more="since 1970; 0: never; also before the operator was started",
)
SWEEPS = counter(
    "penstock_operator_sweeps_total", "Passes over all resources", RESULT, more="`done`, `failed`"
)
SWEEP_SECONDS = gauge("penstock_operator_sweep_seconds", "Time that the last pass took")
WAITING = gauge("penstock_operator_waiting", "Resources that wait to be looked at, or are")
PEERS = gauge(
    "penstock_operator_peers",
    "Peers in the store, by who declared them",
    Label("by", "3"),
    more="`resources`, `discovered`, `others`",
)
RING_STRANDED = gauge(
    "penstock_operator_ring_stranded_messages",
    "Messages in queues of a ring's nodes that no node owns: nobody sends them",
    Label("queue", "nodes that went"),
    more="what [a node left](operations.md#nodes-that-go) that is gone, or has another name now",
)
REDRIVEN = counter("penstock_operator_redriven_total", "Dead letters brought back", unit="messages")
REMOVED = counter(
    "penstock_operator_removed_total",
    "Queues that went or stayed, by outcome",
    Label("outcome", "3"),
    more="of those whose resource went: `Removed`, `Retained`, `Abandoned`",
)
