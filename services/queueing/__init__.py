"""What sessions share whose clients put messages into queues and take them out, in any protocol.

It knows the kit and the store, and no protocol: an edge adds its requests and replies.
"""

from services.queueing.conversation import QueueConversation
from services.queueing.service import QueueService, decode_name
from services.queueing.session import QueueSession
from services.queueing.takes import Rest
from services.queueing.unsettled import Unsettled, release_all, settle_all

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
