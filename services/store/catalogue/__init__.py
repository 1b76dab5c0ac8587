"""Which queues, peers, ring nodes and administrative jobs there are, and what their counters say.

It takes and puts no messages: that is for `pipeline`.
"""

from services.store.catalogue.audit import MOST_OCTETS, AuditEntry, AuditFilter, AuditLine, AuditLog, is_place
from services.store.catalogue.figures import COUNTERS, BulkStatsResult
from services.store.catalogue.job_board import JobBoard, Posted
from services.store.catalogue.peers import read
from services.store.catalogue.queue_list_cache import QueueListCache
from services.store.catalogue.reading import (
    BEGINNING,
    LAST_NUMBER,
    DeadStream,
    Page,
    Reading,
    StreamState,
    next_id,
    parse_id,
)
from services.store.catalogue.registry import EVERYTHING, claim_taken
from services.store.catalogue.ring_groups import Group, Seen, groups

__all__ = [
    "BEGINNING",
    "COUNTERS",
    "EVERYTHING",
    "LAST_NUMBER",
    "MOST_OCTETS",
    "AuditEntry",
    "AuditFilter",
    "AuditLine",
    "AuditLog",
    "BulkStatsResult",
    "DeadStream",
    "Group",
    "JobBoard",
    "Page",
    "Posted",
    "QueueListCache",
    "Reading",
    "Seen",
    "StreamState",
    "claim_taken",
    "groups",
    "is_place",
    "next_id",
    "parse_id",
    "read",
]
