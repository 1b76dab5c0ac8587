"""Background work of each edge for the store: upkeep of queues, samples, statistics.

It uses a store through protocols, and does not import it.
"""

from services.store.upkeep.sample_reader import SampleReader, StoredSample
from services.store.upkeep.stats_poller import POLL_INTERVAL_S, copies_lost, poll_store, read_store_stats

__all__ = [
    "POLL_INTERVAL_S",
    "SampleReader",
    "StoredSample",
    "copies_lost",
    "poll_store",
    "read_store_stats",
]
