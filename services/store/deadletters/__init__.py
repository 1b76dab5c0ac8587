"""Dead letters are searched, redriven and purged here, and puts wait for what becomes of their message.

Why a message dies is decided by the functions in `lua`; this package only reads and moves what is dead.
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
