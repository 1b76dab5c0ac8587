"""The queue store on Redis Streams: the only package that speaks to Redis.

    from services.store import Store, Source, QueueSpec

It knows queues, records, leases, dead letters and commits, and nothing of any protocol: edges hand it bytes and get
bytes back. Everything that decides about messages is a function inside Redis (`lua/`, key schema in lua/schema.lua);
the Python around it packs what many connections ask for into few calls (`call`, `pipe`), finds the right server
(`connect`), and turns refusals into exceptions (`errors`). Beside the queues stands the log of the text service: `log`
appends and reads, `tail` follows, `replica` is for neighbours. It must not know the kit, nor any edge.
"""

from services.store.client import OURSELVES, Client
from services.store.dead import DeadLetters
from services.store.delivery import Delivery
from services.store.domain import Timing
from services.store.errors import StoreError, StoreUnavailable
from services.store.letter import DeadLetter, Filter
from services.store.operations import Part, Source
from services.store.pipe import Pipe, PipeSettings
from services.store.queues import Queue
from services.store.requests import Outcome
from services.store.spec import QueueDocument, QueueSpec
from services.store.store import Store

__all__ = [
    "OURSELVES",
    "Client",
    "DeadLetter",
    "DeadLetters",
    "Delivery",
    "Filter",
    "Outcome",
    "Part",
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
