"""Search, redrive and purge dead letters, purge queues, and track deliveries.

The functions in `lua` decide when a message dies; this package only reads and moves dead letters.
"""

from services.store.deadletters.dead_letters import PAGE, PAGE_OCTETS, WHOLE, RedriveResult, ScanStep
from services.store.deadletters.delivery_tracking import DeliveryResult, DeliveryStatus, DeliveryTracker
from services.store.deadletters.queue_purge import PurgePreview, PurgeProgress, QueuePurge, preview_purge
from services.store.deadletters.redriving import Pace, redrive_steps

__all__ = [
    "PAGE",
    "PAGE_OCTETS",
    "WHOLE",
    "DeliveryResult",
    "DeliveryStatus",
    "DeliveryTracker",
    "Pace",
    "PurgePreview",
    "PurgeProgress",
    "QueuePurge",
    "RedriveResult",
    "ScanStep",
    "preview_purge",
    "redrive_steps",
]
