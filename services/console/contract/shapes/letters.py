"""Messages, dead letters, and the jobs that move them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Base64, Cursor, Ms, Time


class Stored(Shape):
    stored: int


class PeekedMessage(Shape):
    position: str = Field(description="where it stands in the queue; opaque")
    age_ms: Ms
    enqueued_at: Time
    origin: str
    given_out: int = Field(description="how often it was given out")
    failed: int
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class PeekPage(Shape):
    items: list[PeekedMessage]
    next: Cursor


class Ready(Shape):
    """What a dry run found."""

    matched: int = Field(description="messages that would be removed")
    in_flight: int = Field(description="that are given out, and would stay")
    until: str = Field(
        description="what came later was not counted: the change that is counted for says it again"
    )


class Letter(Shape):
    id: str
    reason: str
    error: str
    origin: str
    acquired: int
    failed: int
    redriven: int
    note: str
    enqueued_at: Time
    first_at: Time | None = Field(description="first given out; null: never")
    last_at: Time | None
    died_at: Time
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class LetterPage(Shape):
    items: list[Letter] = Field(
        description="may be fewer than asked for, even none, while `next` says to go on"
    )
    next: Cursor


class Matched(Shape):
    """What a dry run found."""

    until: Time = Field(
        description="what died later was not counted: the change that is counted for says it again"
    )
    matched: int
    looked: int = Field(description="of so many of them, the oldest, the reasons are")
    reasons: dict[str, int]
    complete: bool = Field(
        description="false: more than `matched` are meant; the count took too long and was ended"
    )


class Job(Shape):
    id: str
    kind: Literal["redrive", "purge", "empty"] = Field(description="empty: a queue, of its ready messages")
    queue: str
    target: str | None
    state: Literal["running", "done", "failed", "cancelled"]
    matched: int | None = Field(description="null: still being counted")
    moved: int = Field(description="or removed")
    missing: int = Field(description="somebody else had taken them out")
    started_at: Time
    ended_at: Time | None
    by: str
    rate: int | None = Field(description="at most so many a second; null: no bound")
    error: str | None = Field(description="why it failed, or what it waits for")


class JobPage(Shape):
    items: list[Job]
    next: Cursor
