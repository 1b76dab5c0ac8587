"""Metrics of a process and of queues.

It counts what others report, and reads neither the store nor connections.
"""

from services.kit.metrics.build import Build, version
from services.kit.metrics.log_losses import LogLosses
from services.kit.metrics.metrics import Item, Metrics
from services.kit.metrics.queue_names import OTHER
from services.kit.metrics.queue_states import QueueStates
from services.kit.metrics.report_metrics import ReportMetrics
from services.kit.metrics.store_memory import StoreMemory
from services.kit.metrics.tally import Tally

__all__ = [
    "OTHER",
    "Build",
    "Item",
    "LogLosses",
    "Metrics",
    "QueueStates",
    "ReportMetrics",
    "StoreMemory",
    "Tally",
    "version",
]
