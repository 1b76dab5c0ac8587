"""Roles of callers. Each role includes those before it."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A caller's role, in ascending order of rights."""

    VIEW = "view"  # see everything except settings and the audit log
    OPERATE = "operate"  # publish, redrive and purge dead letters, cancel jobs, close connections
    ADMIN = "admin"  # create, change and delete queues and peers; see settings and the audit log

    def may(self, needed: Role) -> bool:
        """Return whether this role includes another one."""
        return RANKS[self] >= RANKS[needed]


RANKS = {role: rank for rank, role in enumerate(Role)}
