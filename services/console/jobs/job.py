"""A job: one redrive, purge or emptied queue."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.console.access.authorization import Caller
from services.console.contract.moments import moment, moment_or_none
from services.store import Filter, Queue

JobDocument = dict[str, Any]  # a job as the API shows it
PLACE = ("startedAt", "id")  # order of lists


def place_of(job: JobDocument) -> tuple[str, ...]:
    """Return the job's place in lists."""
    return tuple(job[part] for part in PLACE)


def run_of(identifier: str) -> str:
    """Return the ID under which the store counts what the job moves."""
    return f"console.{identifier}"


class Kind(StrEnum):
    """The operation of a job."""

    REDRIVE = "redrive"
    PURGE = "purge"
    EMPTY = "empty"  # purges ready messages


ENDED = {  # actions of the audit log
    Kind.REDRIVE: "dead.redrive.ended",
    Kind.PURGE: "dead.purge.ended",
    Kind.EMPTY: "message.purge.ended",
}


class State(StrEnum):
    """A job's state."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class Job:
    """A job. Times are ms since 1970 by the store's clock."""

    kind: Kind
    queue: Queue
    target: Queue  # the queue itself, except for a redrive
    by: Caller
    wanted: Filter  # of dead letters
    rate: int  # 0: unlimited
    began_ms: int
    until: str = ""  # EMPTY: the last message to purge, as the store names it; '' = all
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = State.RUNNING
    matched: int | None = None
    moved: int = 0
    missing: int = 0
    ended_ms: int = 0
    error: str = ""
    is_completing: bool = False  # the work is done, the result is being published
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # published, or the store is unavailable
    task: asyncio.Task[None] | None = None
    _since: float = field(default_factory=time.monotonic)

    @property
    def run(self) -> str:
        """Return the ID of the run."""
        return run_of(self.id)

    def end(self, state: State) -> None:
        """Set the state and the time of the end, without reading the store's clock."""
        self.ended_ms = self.began_ms + round(1000 * (time.monotonic() - self._since))
        self.state = state

    def document(self) -> JobDocument:
        """Return the job as the API shows it."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "queue": self.queue.name,
            "target": self.target.name if self.kind is Kind.REDRIVE else None,
            "state": self.state.value,
            "matched": self.matched,
            "moved": self.moved,
            "missing": self.missing,
            "startedAt": moment(self.began_ms),
            "endedAt": moment_or_none(self.ended_ms),
            "by": self.by.name,
            "rate": self.rate or None,
            "error": self.error or None,
        }
