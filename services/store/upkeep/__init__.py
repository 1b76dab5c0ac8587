"""Work that each edge does for the store beside its own: upkeep of queues, samples, statistics.

It sees a store through the few methods that it names, and does not import it.
"""

from services.store.upkeep.following import Following, Sampled
from services.store.upkeep.stats_poller import POLL_INTERVAL_S, copies_lost, poll_store, read_store_stats

__all__ = [
    "POLL_INTERVAL_S",
    "Following",
    "Sampled",
    "copies_lost",
    "poll_store",
    "read_store_stats",
]
