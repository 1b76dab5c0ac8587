"""What somebody may do. Each role may what those before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """In the order of their rights."""

    VIEW = "view"  # see everything but settings and the audit log
    OPERATE = "operate"  # put messages in, bring dead letters back, remove them, close connections
    ADMIN = "admin"  # make, change and delete queues and peers; see settings and the audit log

    def may(self, needed: Role) -> bool:
        return RANKS[self] >= RANKS[needed]


RANKS = {role: rank for rank, role in enumerate(Role)}
