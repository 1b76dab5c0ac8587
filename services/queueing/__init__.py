"""Sessions of clients that publish to queues and take from them, for any protocol.

It uses the kit and the store; an edge adds its protocol's requests and replies.
"""

from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService
from services.queueing.session import QueueSession
from services.queueing.takes import Rest
from services.queueing.unsettled import Unsettled, release_all, settle_all
from services.store.model import decode_name

__all__ = [
    "QueueConversation",
    "QueueService",
    "QueueSession",
    "Rest",
    "Unsettled",
    "decode_name",
    "release_all",
    "settle_all",
]
