"""Models of the store, the caller, the audit log and the settings."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from services.console.contract.roles import Role
from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Time
from services.console.contract.shapes.queues import AllRates


class Promises(Shape):
    """Ack levels and replication of the store."""

    levels: list[str]
    mode: str
    replicas: int
    fsyncs: bool


class StoreState(Shape):
    """The state of the store."""

    server: str
    version: str
    used_bytes: int | None = Field(description="null: unknown")
    max_bytes: int | None = Field(description="null: no limit, or unknown")
    promises: Promises
    alarms: list[str]


class Totals(Shape):
    """Totals of all queues and processes."""

    queues: int
    ready: int
    in_flight: int
    dead: int
    bytes: int
    connections: int | None = Field(description="null: not known yet")
    edges: int


class Overview(Shape):
    """The store with totals and rates."""

    store: StoreState
    totals: Totals
    rates: AllRates
    at: Time


class Me(Shape):
    """The caller's identity and role."""

    who: str
    role: Role
    auth: Literal["token", "proxy"]


class AuditLine(Shape):
    """A line of the audit log."""

    at: Time
    who: str
    role: str
    auth: str = Field(description="token or proxy; empty or off: written by an older version")
    address: str
    action: str
    target: str
    outcome: str = Field(description="done, or the label of the problem")
    detail: str = Field(description="JSON of at most 1,000 octets; empty: no details")


class AuditPage(Shape):
    """A page of the audit log."""

    items: list[AuditLine]
    next: Cursor


class Settings(Shape):
    """The settings of the process with their sources."""

    settings: dict[str, Any]
    origins: dict[str, str]
