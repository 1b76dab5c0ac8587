"""The path of messages: verbs of many connections become one call of the store, and its reply becomes their outcomes.

It knows one domain at a time and takes queues as it is given them: which queues there are is for `catalogue`.
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
