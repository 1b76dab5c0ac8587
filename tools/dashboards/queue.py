"""The dashboard of single queues."""

from __future__ import annotations

from tools.dashboards.board import OF_RELEASE, RATE, USUAL, Board, Panel, Variable

DONE = '$EDGES,queue=~"$queue"'
STANDS = '$CONTROL,queue=~"$queue"'
CHOSEN = Variable(
    "queue",
    "Queue",
    'label_values({__name__=~"penstock_queue_ready_messages|penstock_queue_in_messages_total",'
    f"{OF_RELEASE}}}, queue)",
)
ON = "By queue if metrics.queues is on (chart: monitoring.queues.enabled)."
ALSO_LATENCIES = "Requires metrics.queue_latencies (chart: monitoring.queues.latencies)."


def now(metric: str) -> str:
    """Return the query for a gauge; operator and console report the same, so that the maximum is taken."""
    return f"max by ($WHOSE, queue) (penstock_queue_{metric}{{{STANDS}}})"


def risen(metric: str) -> str:
    """Return the query for the rate of a counter of the operator or the console."""
    return f"max by ($WHOSE, queue) (rate(penstock_queue_{metric}_total{{{STANDS}}}{RATE}))"


def rate(metric: str) -> str:
    """Return the query for the rate of a counter of the edges."""
    return f"sum by ($WHOSE, queue) (rate(penstock_queue_{metric}_total{{{DONE}}}{RATE}))"


def quantile(part: float, metric: str) -> str:
    """Return the query for a quantile of a histogram of the edges."""
    buckets = f"rate(penstock_queue_{metric}_seconds_bucket{{{DONE}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, queue, le) ({buckets}))"


QUEUE = Board(
    "queue",
    "Queue",
    "Queue statistics and traffic. Queues without a name in metrics are summed as `_other`.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Ready",
            "Messages ready for delivery.",
            "short",
            (now("ready_messages"), "{{queue}}"),
        ),
        Panel.of(
            "In flight",
            "Messages delivered but not yet acknowledged.",
            "short",
            (now("in_flight_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Oldest message",
            "Age of the oldest unacknowledged message; it rises without consumers.",
            "s",
            (now("oldest_age_seconds"), "{{queue}}"),
        ),
        Panel.of("In", f"Messages put into the queue. {ON}", "mps", (rate("in_messages"), "{{queue}}")),
        Panel.of(
            "Out",
            f"Messages delivered, including redeliveries. {ON}",
            "mps",
            (rate("out_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Settled",
            f"Messages acknowledged, and messages returned. {ON}",
            "mps",
            (rate("acked_messages"), "{{queue}} acknowledged"),
            (rate("returned_messages"), "{{queue}} returned"),
        ),
        Panel.of(
            "Refused",
            f"Refused messages and other requests, by the store's reason. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue, reason) (rate(penstock_queue_refused_messages_total{{{DONE}}}{RATE}))",
                "{{queue}} {{reason}}",
            ),
        ),
        Panel.of(
            "Traffic",
            f"Bytes of bodies and attributes. {ON}",
            "Bps",
            (rate("in_bytes"), "{{queue}} in"),
            (rate("out_bytes"), "{{queue}} out"),
        ),
        Panel.of(
            "Size",
            "Bytes of messages, as counted for the queue's limits.",
            "bytes",
            (now("bytes"), "{{queue}}"),
        ),
        Panel.of(
            "Fill level",
            "Used fraction of maxLength or maxBytes, whichever is higher; at 100 % the queue refuses messages. "
            "0 without limits, or with overflow dead_letter_oldest.",
            "percentunit",
            (now("used_ratio"), "{{queue}}"),
        ),
        Panel.of(
            "Time to durable",
            f"From a put to its acknowledgement, p50 and p99. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "put"), "{{queue}} p50"),
            (quantile(0.99, "put"), "{{queue}} p99"),
        ),
        Panel.of(
            "Time to first delivery",
            f"Age of messages at their first delivery, p50 and p99. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "wait"), "{{queue}} p50"),
            (quantile(0.99, "wait"), "{{queue}} p99"),
        ),
        Panel.of(
            "Dead letters",
            "Present number by queue.",
            "short",
            (now("dead_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Duplicates and fenced settlements",
            "Repeated batches, commits and requests, and messages settled after their lease had expired.",
            "cps",
            (risen("duplicates"), "{{queue}} duplicates"),
            (risen("fenced_messages"), "{{queue}} fenced"),
        ),
    ),
)
