"""Declare the metric of tracing."""

from __future__ import annotations

from services.kit.measure import Label, counter

WHO = "every edge, the console, the System V bridge"
EXPORTED, FAILED, DROPPED, LIMITED = "exported", "failed", "dropped", "limited"
UNFOLLOWED = "unfollowed"
IF_ON = "if `tracing.endpoint` is set"

SPANS = counter(
    "penstock_trace_spans_total",
    "Spans by result",
    Label("result", "5"),
    more="`exported`: accepted by the collector; `failed`: it was unavailable, too slow or rejected them; `dropped`: "
    "`tracing.queue` was full; `limited`: traces not started because of `tracing.most_per_s`; `unfollowed`: "
    f"missing in traces because of `tracing.most_followed_per_s`; {IF_ON}",
)
