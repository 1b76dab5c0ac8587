"""One redrive, purge or emptying under way."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.console.access.identity import Caller
from services.console.contract.moments import moment, moment_or_none
from services.store import Filter, Queue

Told = dict[str, Any]  # a job as the API tells of it
PLACE = ("startedAt", "id")  # by which jobs are listed


def place_of(told: Told) -> tuple[str, ...]:
    return tuple(told[part] for part in PLACE)


def run_of(identifier: str) -> str:
    """Under which the store counts what this job moves, whatever becomes of its answers."""
    return f"console.{identifier}"


class Kind(StrEnum):
    REDRIVE = "redrive"
    PURGE = "purge"
    EMPTY = "empty"  # of a queue: its ready messages


ENDED = {  # under which the audit log tells of the end
    Kind.REDRIVE: "dead.redrive.ended",
    Kind.PURGE: "dead.purge.ended",
    Kind.EMPTY: "message.purge.ended",
}


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Job:
    """Times are ms since 1970 of the store's clock."""

    kind: Kind
    queue: Queue
    goal: Queue  # but of a redrive, the queue itself
    by: Caller
    wanted: Filter  # which dead letters
    rate: int  # 0: no bound
    began_ms: int
    until: str = (
        ""  # of an emptying: the last message that is meant, as the store names it; '' = all there is
    )
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = State.RUNNING
    matched: int | None = None
    moved: int = 0
    missing: int = 0
    ended_ms: int = 0
    error: str = ""
    is_ending: bool = False  # its work is over, and it says its last words
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # they were said, or cannot be said now
    task: asyncio.Task[None] | None = None
    _since: float = field(default_factory=time.monotonic)

    @property
    def run(self) -> str:
        return run_of(self.id)

    def end(self, state: State) -> None:
        """The store, which may be away, need not be asked for the time."""
        self.ended_ms = self.began_ms + round(1000 * (time.monotonic() - self._since))
        self.state = state

    def told(self) -> Told:
        return {
            "id": self.id,
            "kind": self.kind.value,
            "queue": self.queue.name,
            "target": self.goal.name if self.kind is Kind.REDRIVE else None,
            "state": self.state.value,
            "matched": self.matched,
            "moved": self.moved,
            "missing": self.missing,
            "startedAt": moment(self.began_ms),
            "endedAt": moment_or_none(self.ended_ms),
            "by": self.by.who,
            "rate": self.rate or None,
            "error": self.error or None,
        }
