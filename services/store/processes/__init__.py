"""Running processes: their directory, questions to them over the store, and notifications of queues that have messages.

It does not know what an edge answers.
"""

from services.store.processes.presence import Process
from services.store.processes.queue_notifications import POLL_S, Wake
from services.store.processes.rpc_client import Answer, Answers

__all__ = [
    "POLL_S",
    "Answer",
    "Answers",
    "Process",
    "Wake",
]
