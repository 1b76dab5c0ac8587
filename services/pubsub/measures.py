"""What the text service counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import counter, gauge

WHO = "pubsub"

DELIVERIES = counter("penstock_deliveries_total", "MESSAGE lines written")
SUBSCRIPTIONS = gauge(
    "penstock_subscriptions", "Subscriptions open now", more="also those whose OK is still to come"
)
SLOW = gauge("penstock_slow_subscribers", "Subscribers served from the log now")
FOLLOWING = gauge(
    "penstock_links_following",
    "Neighbours that this process follows",
    more="one that is down, or followed by another process, is missing",
)
SERVING = gauge("penstock_links_serving", "Neighbours that follow this process")
TAKEN = counter("penstock_link_messages_total", "Messages taken from neighbours")
MISSING = counter(
    "penstock_link_gaps_total", "Messages that a neighbour had no more", more="another may still bring them"
)
