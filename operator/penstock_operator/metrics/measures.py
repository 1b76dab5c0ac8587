"""Declare the operator's metrics, listed in docs/metrics.md."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "the operator"
RECONCILE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

KIND = Label("kind", "kinds, 5")
RESULT = Label("result", "2")
OF_QUEUE = (Label("namespace", "namespaces"), Label("name", "1, and 1 for each named Queue"))
EXPORTED = (
    "with a `namespace` label from the scrape, as monitors add, this label becomes `exported_namespace`"
)

RECONCILED = counter(
    "penstock_operator_looks_total",
    "Resources reconciled, by result",
    KIND,
    RESULT,
    more="`done`, `failed` (and retried)",
)
RECONCILE_SECONDS = histogram(
    "penstock_operator_look_seconds", "Time to reconcile a resource", KIND, buckets=RECONCILE_BUCKETS_S
)
DEPTH = gauge(
    "penstock_operator_queue_depth",
    "Ready and in-flight messages of the Queues of a namespace when last sampled",
    *OF_QUEUE,
    unit="messages",
    more=f"`name` is the Queue, or `_other` for the rest of the namespace; {EXPORTED}",
)
STATUS_PATCHES = counter("penstock_operator_status_patches_total", "Status updates written", KIND)
EVENTS = counter(
    "penstock_operator_events_total", "Events written, by reason", Label("reason", "reasons, some 20")
)
RESOURCES = gauge(
    "penstock_operator_resources",
    "Resources, by reason of the condition Ready",
    KIND,
    Label("reason", "reasons, some 20"),
)
STORE_UP = gauge(
    "penstock_operator_store_up",
    "Whether the store can be used (1) or not (0)",
    more="1 if all domains are available and accept writes",
)
RESTORED = counter(
    "penstock_operator_store_restored_total",
    "Times the store came back with another dataset",
    more="usually an empty store that was set up again",
)
REPLACED = gauge(
    "penstock_operator_store_replaced_time_seconds",
    "When the store was last found with another dataset than before",
    more="Unix time; 0: never; survives restarts of the operator",
)
SWEEPS = counter(
    "penstock_operator_sweeps_total", "Sweeps over all resources", RESULT, more="`done`, `failed`"
)
SWEEP_SECONDS = gauge("penstock_operator_sweep_seconds", "Duration of the last sweep")
WAITING = gauge("penstock_operator_waiting", "Resources queued or being reconciled")
PEERS = gauge(
    "penstock_operator_peers",
    "Peers in the store, by how they were declared",
    Label("by", "3"),
    more="`resources`, `discovered`, `others`",
)
RING_STRANDED = gauge(
    "penstock_operator_ring_stranded_messages",
    "Messages in the queues of ring nodes that no longer exist; they are not sent",
    Label("queue", "removed nodes"),
    more="left by [nodes that were removed or renamed](operations.md#nodes-that-go)",
)
REDRIVEN = counter("penstock_operator_redriven_total", "Dead letters redriven", unit="messages")
REMOVED = counter(
    "penstock_operator_removed_total",
    "Queues of deleted resources, by outcome",
    Label("outcome", "3"),
    more="`Removed`, `Retained`, `Abandoned`",
)
