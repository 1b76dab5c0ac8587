"""Metrics of the text pub/sub edge (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import counter, gauge

WHO = "pubsub"

DELIVERIES = counter("penstock_deliveries_total", "MESSAGE lines written")
SUBSCRIPTIONS = gauge(
    "penstock_subscriptions", "Open subscriptions", more="including those whose OK is still to come"
)
SLOW = gauge("penstock_slow_subscribers", "Slow subscribers, served from the log")
LOST = counter(
    "penstock_subscriber_lost_messages_total",
    "Messages that slow subscribers lost because the log was trimmed",
    more="up to the log's end; each was sent their number and closed: the refusal `slow_subscriber`",
)
FOLLOWING = gauge(
    "penstock_links_following",
    "Neighbours that this process follows",
    more="without those that are down or followed by another process",
)
DOWN = gauge(
    "penstock_links_down",
    "Neighbours that this process dials but has no link with",
    more="each worker dials all of them; this is the worst worker's number; servers on the same store do not count",
    merge="livemax",
)
SERVING = gauge("penstock_links_serving", "Neighbours that follow this process")
TAKEN = counter("penstock_link_messages_total", "Messages taken from neighbours")
MISSING = counter(
    "penstock_link_gaps_total",
    "Messages that a neighbour had already trimmed",
    more="another neighbour may still send them",
)
