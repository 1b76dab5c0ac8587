"""The store as a whole, and the console itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from services.console.contract.roles import Role
from services.console.contract.shape import Shape
from services.console.contract.shapes.parts import Cursor, Time
from services.console.contract.shapes.queues import AllRates


class Promises(Shape):
    levels: list[str]
    mode: str
    replicas: int
    fsyncs: bool


class StoreState(Shape):
    server: str
    version: str
    used_bytes: int | None = Field(description="null: the store does not say")
    max_bytes: int | None = Field(description="null: no bound, or the store does not say")
    promises: Promises
    alarms: list[str]


class Totals(Shape):
    queues: int
    ready: int
    in_flight: int
    dead: int
    bytes: int
    connections: int | None = Field(description="null: not known yet")
    edges: int


class Overview(Shape):
    store: StoreState
    totals: Totals
    rates: AllRates
    at: Time


class Me(Shape):
    who: str
    role: Role
    auth: Literal["token", "proxy"]


class AuditLine(Shape):
    at: Time
    who: str
    role: str
    auth: str = Field(description="token or proxy; empty or off: the line is of an older version")
    address: str
    action: str
    target: str
    outcome: str = Field(description="done, or the label of what stood against it")
    detail: str = Field(description="JSON of at most 1,000 octets; empty: nothing")


class AuditPage(Shape):
    items: list[AuditLine]
    next: Cursor


class Settings(Shape):
    settings: dict[str, Any]
    origins: dict[str, str]
