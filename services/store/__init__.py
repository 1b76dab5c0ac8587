"""Store queues in Redis Streams; no other package connects to Redis.

    from services.store import Store, Source, QueueSpec

The store has queues, records, leases, dead letters and commits, and is independent of protocols: edges pass and get
bytes. All decisions about messages are made by functions inside Redis (`lua/`, key schema in lua/schema.lua). The
Python code packs the requests of many connections into few calls (`call`, `pipe`), finds the server (`connect`) and
turns refusals into exceptions (`errors`). The log of the text service is separate from the queues: `log` appends and
reads, `tail` follows, `replica` serves neighbours. The store knows neither the kit nor any edge.
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
]
