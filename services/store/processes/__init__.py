"""Running processes: their directory, RPC to them through the store, and notifications of queues that have messages.

The answers to questions come from the edges.
"""

from services.store.processes.presence import Process
from services.store.processes.process_directory import Answers
from services.store.processes.queue_notifications import POLL_S
from services.store.processes.rpc_protocol import Answer

__all__ = [
    "POLL_S",
    "Answer",
    "Answers",
    "Process",
]
