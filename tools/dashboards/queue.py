"""Single queues: how they stand, and what edges do with them."""

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
ON = "Of each queue where metrics.queues is on (chart: monitoring.queues.enabled)."
ALSO_LATENCIES = "Where metrics.queue_latencies is on, too (chart: monitoring.queues.latencies)."


def now(metric: str) -> str:
    """Two that look find the same: the greater stands for both."""
    return f"max by ($WHOSE, queue) (penstock_queue_{metric}{{{STANDS}}})"


def risen(metric: str) -> str:
    """A second, as whoever looks at all queues sees it."""
    return f"max by ($WHOSE, queue) (rate(penstock_queue_{metric}_total{{{STANDS}}}{RATE}))"


def rate(metric: str) -> str:
    return f"sum by ($WHOSE, queue) (rate(penstock_queue_{metric}_total{{{DONE}}}{RATE}))"


def quantile(part: float, metric: str) -> str:
    buckets = f"rate(penstock_queue_{metric}_seconds_bucket{{{DONE}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, queue, le) ({buckets}))"


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
            (now("ready_messages"), "{{queue}}"),
        ),
        Panel.of(
            "In flight",
            "Messages that are given out and not settled.",
            "short",
            (now("in_flight_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Oldest message",
            "The age of the oldest that is not settled: it rises while nobody takes.",
            "s",
            (now("oldest_age_seconds"), "{{queue}}"),
        ),
        Panel.of("In", f"Messages that were put in. {ON}", "mps", (rate("in_messages"), "{{queue}}")),
        Panel.of(
            "Out",
            f"Messages that were given out, also again. {ON}",
            "mps",
            (rate("out_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Settled",
            f"Messages that their takers have done with, and those that went back. {ON}",
            "mps",
            (rate("acked_messages"), "{{queue}} settled"),
            (rate("returned_messages"), "{{queue}} returned"),
        ),
        Panel.of(
            "Refused",
            f"Messages that were not accepted, and other requests, by the store's reason. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue, reason) (rate(penstock_queue_refused_messages_total{{{DONE}}}{RATE}))",
                "{{queue}} {{reason}}",
            ),
        ),
        Panel.of(
            "Traffic",
            f"Octets of bodies and attributes. {ON}",
            "Bps",
            (rate("in_bytes"), "{{queue}} in"),
            (rate("out_bytes"), "{{queue}} out"),
        ),
        Panel.of(
            "Size",
            "Octets of messages, as the queue's limits count them.",
            "bytes",
            (now("bytes"), "{{queue}}"),
        ),
        Panel.of(
            "Part of its bounds",
            "That is used, of maxLength or maxBytes whichever is nearer; at 100 % it refuses what comes. "
            "0 without bounds, or where the oldest make way.",
            "percentunit",
            (now("used_ratio"), "{{queue}}"),
        ),
        Panel.of(
            "Time until durable",
            f"Of messages that were put in: half of them, and 99 of 100. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "put"), "{{queue}} half"),
            (quantile(0.99, "put"), "{{queue}} 99 of 100"),
        ),
        Panel.of(
            "Waited",
            f"The age of messages when they were first given out: half of them, and 99 of 100. {ALSO_LATENCIES}",
            "s",
            (quantile(0.5, "wait"), "{{queue}} half"),
            (quantile(0.99, "wait"), "{{queue}} 99 of 100"),
        ),
        Panel.of(
            "Dead letters",
            "That there are, of the queue.",
            "short",
            (now("dead_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Came again, came too late",
            "Batches, commits and requests that were done before, and messages settled by who had them no more.",
            "cps",
            (risen("duplicates"), "{{queue}} again"),
            (risen("fenced_messages"), "{{queue}} too late"),
        ),
    ),
)
