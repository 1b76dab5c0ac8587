"""Define the metrics of tracing (docs/tracing.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter

WHO = "every edge, the console, the System V bridge"
EXPORTED, FAILED, DROPPED, LIMITED = "exported", "failed", "dropped", "limited"
UNFOLLOWED = "unfollowed"
IF_ON = "if `tracing.endpoint` is set"

SPANS = counter(
    "penstock_trace_spans_total",
    "Spans by outcome",
    Label("result", "5"),
    more="`exported`: the collector accepted them; `failed`: it was unreachable, too slow or rejected them; `dropped`: "
    "the queue (`tracing.queue`) was full; `limited`: messages that began no trace because of `tracing.most_per_s`; "
    f"`unfollowed`: spans not recorded because of `tracing.most_followed_per_s`; {IF_ON}",
)
