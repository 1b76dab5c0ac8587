"""What a process that is traced counts (docs/tracing.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter

WHO = "every edge, the console, the System V bridge"
EXPORTED, FAILED, DROPPED, LIMITED = "exported", "failed", "dropped", "limited"
UNFOLLOWED = "unfollowed"
IF_ON = "where `tracing.endpoint` is set"

SPANS = counter(
    "penstock_trace_spans_total",
    "Spans by what became of them",
    Label("result", "5"),
    more="`exported`: the collector has them; `failed`: it was away, too slow or refused them; `dropped`: as many as "
    "`tracing.queue` were waiting; `limited`: messages that began no trace for `tracing.most_per_s`; `unfollowed`: "
    f"what is missing in traces for `tracing.most_followed_per_s`; {IF_ON}",
)
