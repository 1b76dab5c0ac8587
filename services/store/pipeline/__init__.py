"""The message path: batch the operations of many connections into one call of the store and dispatch its reply.

It handles one domain at a time, and queues as callers pass them: finding queues is the job of `catalogue`.
"""

from services.store.pipeline.answer import Answer, answered
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.claims import Asked, Claims
from services.store.pipeline.domain import Domain, Timing

__all__ = [
    "Answer",
    "Asked",
    "AsyncClient",
    "Claims",
    "Domain",
    "Timing",
    "answered",
]
