"""Work that each edge does for the store beside its own: upkeep of queues, samples, statistics.

It sees a store through the few methods that it names, and does not import it.
"""

from services.store.upkeep.following import Following, Sampled
from services.store.upkeep.stats_poller import LOOK_S, copies_lost, keep_looking, standings

__all__ = [
    "LOOK_S",
    "Following",
    "Sampled",
    "copies_lost",
    "keep_looking",
    "standings",
]
