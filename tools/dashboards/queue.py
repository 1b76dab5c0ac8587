"""Single queues: how they stand, and what edges do with them."""

from __future__ import annotations

from tools.dashboards.board import USUAL, Board, Panel, Variable

RATE = "[$__rate_interval]"
DONE = '$EDGES,queue=~"$queue"'
STANDS = '$OPERATOR,queue=~"$queue"'
CHOSEN = Variable(
    "queue",
    "Queue",
    'label_values({__name__=~"penstock_queue_ready_messages|penstock_queue_in_messages_total",'
    'namespace=~"$namespace"}, queue)',
)
ON = "Of each queue where metrics.queues is on (chart: monitoring.queues.enabled)."
ALSO_LATENCIES = "Where metrics.queue_latencies is on, too (chart: monitoring.queues.latencies)."


def now(metric: str) -> str:
    """Two that look find the same: the greater stands for both."""
    return f"max by (namespace, queue) (penstock_queue_{metric}{{{STANDS}}})"


def rate(metric: str) -> str:
    return f"sum by (namespace, queue) (rate(penstock_queue_{metric}_total{{{DONE}}}{RATE}))"


def quantile(part: float, metric: str) -> str:
    buckets = f"rate(penstock_queue_{metric}_seconds_bucket{{{DONE}}}{RATE})"
    return f"histogram_quantile({part}, sum by (namespace, queue, le) ({buckets}))"


QUEUE = Board(
    "queue",
    "Queue",
    "How queues stand, and what edges do with them. Queues without a name of their own are `_other`.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Ready",
            "Messages that wait to be given out.",
            "short",
            (now("ready_messages"), "{{namespace}} {{queue}}"),
        ),
        Panel.of(
            "In flight",
            "Messages that are given out and not settled.",
            "short",
            (now("in_flight_messages"), "{{namespace}} {{queue}}"),
        ),
        Panel.of(
            "Oldest message",
            "The age of the oldest that is not settled: it rises while nobody takes.",
            "s",
            (now("oldest_age_seconds"), "{{namespace}} {{queue}}"),
        ),
        Panel.of(
            "In", f"Messages that were put in. {ON}", "mps", (rate("in_messages"), "{{namespace}} {{queue}}")
        ),
        Panel.of(
            "Out",
            f"Messages that were given out, also again. {ON}",
            "mps",
            (rate("out_messages"), "{{namespace}} {{queue}}"),
        ),
        Panel.of(
            "Settled",
            f"Messages that their takers have done with, and those that went back. {ON}",
            "mps",
            (rate("acked_messages"), "{{namespace}} {{queue}} settled"),
            (rate("returned_messages"), "{{namespace}} {{queue}} returned"),
        ),
        Panel.of(
            "Refused",
            f"Messages that were not accepted, and other requests, by the store's reason. {ON}",
            "mps",
            (
                f"sum by (namespace, queue, reason) (rate(penstock_queue_refused_messages_total{{{DONE}}}{RATE}))",
                "{{namespace}} {{queue}} {{reason}}",
            ),
        ),
        Panel.of(
            "Traffic",
            f"Octets of bodies and attributes. {ON}",
            "Bps",
            (rate("in_bytes"), "{{namespace}} {{queue}} in"),
            (rate("out_bytes"), "{{namespace}} {{queue}} out"),
        ),
        Panel.of(
            "Size",
            "Octets of messages, as the queue's limits count them.",
            "bytes",
            (now("bytes"), "{{namespace}} {{queue}}"),
        ),
        Panel.of(
            "Time until durable",
            f"Of messages that were put in: half of them, and 99 of 100. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "put"), "{{namespace}} {{queue}} half"),
            (quantile(0.99, "put"), "{{namespace}} {{queue}} 99 of 100"),
        ),
        Panel.of(
            "Waited",
            f"The age of messages when they were first given out: half of them, and 99 of 100. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "wait"), "{{namespace}} {{queue}} half"),
            (quantile(0.99, "wait"), "{{namespace}} {{queue}} 99 of 100"),
        ),
        Panel.of(
            "Dead letters",
            "That there are, of the queue.",
            "short",
            (now("dead_messages"), "{{namespace}} {{queue}}"),
        ),
    ),
)
