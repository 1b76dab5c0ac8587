"""Declare the metrics of the text service."""

from __future__ import annotations

from services.kit.measure import counter, gauge

WHO = "pubsub"

DELIVERIES = counter("penstock_deliveries_total", "MESSAGE lines written")
SUBSCRIPTIONS = gauge(
    "penstock_subscriptions", "Open subscriptions", more="includes those whose OK is still to be sent"
)
SLOW = gauge("penstock_slow_subscribers", "Slow subscribers, served from the log")
LOST = counter(
    "penstock_subscriber_lost_messages_total",
    "Messages lost by slow subscribers because the log was trimmed",
    more="each subscriber was sent the number and disconnected: refusal `slow_subscriber`",
)
FOLLOWING = gauge(
    "penstock_links_following",
    "Neighbours that this process follows",
    more="excludes neighbours that are down or followed by another process",
)
DOWN = gauge(
    "penstock_links_down",
    "Neighbours that this process dials without having a link",
    more="each worker dials all neighbours: the highest value of the workers; excludes servers on the same store",
    merge="livemax",
)
SERVING = gauge("penstock_links_serving", "Neighbours that follow this process")
TAKEN = counter("penstock_link_messages_total", "Messages received from neighbours")
MISSING = counter(
    "penstock_link_gaps_total",
    "Messages that a neighbour had already trimmed",
    more="another neighbour may still have them",
)
