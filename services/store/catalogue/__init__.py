"""Read and change the catalogue of queues, peers, ring nodes and administrative jobs, and read their counters.

Messages are put and taken by `pipeline`.
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
    StreamReader,
    StreamState,
    next_id,
)
from services.store.catalogue.registry import EVERYTHING, claim_taken
from services.store.catalogue.ring_groups import Group, NodeState, groups
from services.store.model.dead_letter import parse_id

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
    "NodeState",
    "Page",
    "Posted",
    "QueueListCache",
    "StreamReader",
    "StreamState",
    "claim_taken",
    "groups",
    "is_place",
    "next_id",
    "parse_id",
    "read",
]
