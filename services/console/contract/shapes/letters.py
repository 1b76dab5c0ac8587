"""Models of messages, dead letters and jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Base64, Cursor, Ms, Time


class Stored(Shape):
    """The number of messages stored."""

    stored: int


class PeekedMessage(Shape):
    """A ready message."""

    position: str = Field(description="position in the queue; opaque")
    age_ms: Ms
    enqueued_at: Time
    origin: str
    given_out: int = Field(description="number of deliveries")
    failed: int
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class PeekPage(Shape):
    """A page of ready messages."""

    items: list[PeekedMessage]
    next: Cursor


class Ready(Shape):
    """The result of a dry run of purging ready messages."""

    matched: int = Field(description="messages that would be deleted")
    in_flight: int = Field(description="messages in flight, which would stay")
    until: str = Field(
        description="later messages were not counted; pass this value to purge what was counted"
    )


class Letter(Shape):
    """A dead letter."""

    id: str
    reason: str
    error: str
    origin: str
    acquired: int
    failed: int
    redriven: int
    note: str
    enqueued_at: Time
    first_at: Time | None = Field(description="first delivery; null: never delivered")
    last_at: Time | None
    died_at: Time
    bytes: int
    attributes: dict[str, Any]
    body_base64: Base64
    truncated: bool


class LetterPage(Shape):
    """A page of dead letters."""

    items: list[Letter] = Field(
        description="may have fewer items than `limit`, even none; continue until `next` is null"
    )
    next: Cursor


class Matched(Shape):
    """The result of a dry run of a redrive or purge."""

    until: Time = Field(
        description="later deaths were not counted; pass this value to move or purge what was counted"
    )
    matched: int
    looked: int = Field(description="number of the oldest ones that `reasons` covers")
    reasons: dict[str, int]
    complete: bool = Field(description="false: the count timed out, and there are more than `matched`")


class Job(Shape):
    """A job: a redrive, a purge, or an emptied queue."""

    id: str
    kind: Literal["redrive", "purge", "empty"] = Field(description="empty: purge a queue's ready messages")
    queue: str
    target: str | None
    state: Literal["running", "done", "failed", "cancelled"]
    matched: int | None = Field(description="null: still being counted")
    moved: int = Field(description="moved or deleted")
    missing: int = Field(description="removed by other programs before the job reached them")
    started_at: Time
    ended_at: Time | None
    by: str
    rate: int | None = Field(description="messages per second at most; null: unlimited")
    error: str | None = Field(description="why it failed, or what it is waiting for")


class JobPage(Shape):
    """A page of jobs."""

    items: list[Job]
    next: Cursor
