"""The log of the text service: sends are appended, readers follow it, and neighbours replicate it.

It does not know the protocol of the text service, nor its links.
"""

from services.store.log.log import (
    NO_SUBSCRIPTIONS,
    START,
    Entry,
    Log,
    LogSpec,
    Place,
    Subscriptions,
    parse_place,
)
from services.store.log.replica import Arrived, CopyCallback, Gap, Held, LogState, Neighbour, Origin, Replica
from services.store.log.tail import Tail

__all__ = [
    "NO_SUBSCRIPTIONS",
    "START",
    "Arrived",
    "CopyCallback",
    "Entry",
    "Gap",
    "Held",
    "Log",
    "LogSpec",
    "LogState",
    "Neighbour",
    "Origin",
    "Place",
    "Replica",
    "Subscriptions",
    "Tail",
    "parse_place",
]
