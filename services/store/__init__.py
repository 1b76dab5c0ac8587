"""The queue store on Redis Streams: the only package that speaks to Redis.

    from services.store import Store, Source, QueueSpec

It knows queues, records, leases, dead letters and commits, and nothing of any protocol: edges hand it bytes and get
bytes back. Everything that decides about messages is a function inside Redis (`lua/`, key schema in lua/schema.lua);
the Python around it packs what many connections ask for into few calls (`call`, `pipe`), finds the right server
(`connect`), and turns refusals into exceptions (`errors`). Beside the queues stands the log of the text service: `log`
appends and reads, `tail` follows, `replica` is for neighbours. It must not know the kit, nor any edge.
"""

from services.store.deadletters.dead_letters import DeadLetters
from services.store.model.client import INTERNAL_CLIENT, Client
from services.store.model.dead_letter import DeadLetter, Filter
from services.store.model.delivery import Delivery
from services.store.model.errors import StoreError, StoreUnavailable
from services.store.model.operations import CommitPart, Source
from services.store.model.queues import Queue
from services.store.model.requests import Outcome
from services.store.model.spec import QueueDocument, QueueSpec
from services.store.pipeline.domain import Timing
from services.store.pipeline.pipe import Pipe, PipeSettings
from services.store.store import Store

__all__ = [
    "INTERNAL_CLIENT",
    "Client",
    "CommitPart",
    "DeadLetter",
    "DeadLetters",
    "Delivery",
    "Filter",
    "Outcome",
    "Pipe",
    "PipeSettings",
    "Queue",
    "QueueDocument",
    "QueueSpec",
    "Source",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Timing",
]
