"""What the text service counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import counter, gauge

WHO = "pubsub"

DELIVERIES = counter("penstock_deliveries_total", "MESSAGE lines written")
SUBSCRIPTIONS = gauge(
    "penstock_subscriptions", "Subscriptions open now", more="also those whose OK is still to come"
)
SLOW = gauge("penstock_slow_subscribers", "Subscribers served from the log now")
LOST = counter(
    "penstock_subscriber_lost_messages_total",
    "Messages that subscribers did not get as the log was trimmed before they were ready",
    more="up to the log's end; each was told how many, and closed: the refusal `slow_subscriber`",
)
FOLLOWING = gauge(
    "penstock_links_following",
    "Neighbours that this process follows",
    more="one that is down, or followed by another process, is missing",
)
DOWN = gauge(
    "penstock_links_down",
    "Neighbours that this process dials and has no link with",
    more="each of several workers dials all of them: the worst one's; servers on the same store are not among them",
    merge="livemax",
)
SERVING = gauge("penstock_links_serving", "Neighbours that follow this process")
TAKEN = counter("penstock_link_messages_total", "Messages taken from neighbours")
MISSING = counter(
    "penstock_link_gaps_total", "Messages that a neighbour had no more", more="another may still bring them"
)
