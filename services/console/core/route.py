"""What a route is. One table of these (`table`) makes the application and the OpenAPI document, so neither can say what
the other does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from services.console.access.identity import Caller
from services.console.contract.roles import Role
from services.console.contract.shape import JSON, Nothing, encode
from services.console.core.console import Console
from services.console.http.memory_budget import Share

USUAL_BODY = 1 << 20  # octets of a request


class Condition(Enum):
    """What a change asks of `If-Match`."""

    NONE = "none"
    MATCH = "match"  # needed
    REPLACE = "replace"  # needed to replace; `If-None-Match: *` only makes
    UNLESS_DRY = "unless dry"  # needed, but for a dry run


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked: `query` and `body` are what the route's models made of it."""

    console: Console
    request: web.Request
    who: Caller
    path: Mapping[str, str]  # surrogateescape: any octets
    query: Any
    body: Any
    share: Share  # of the memory for what comes and goes
    again: Callable[[], Caller]  # who asks, as of now: raises Problem where he may not come any more
    detail: dict[str, Any] = field(default_factory=dict)  # what the audit log is to say beside the target

    @property
    def headers(self) -> Mapping[str, str]:
        return self.request.headers


@dataclass(frozen=True, slots=True)
class Answer:
    """`document` as JSON; or `octets` as they are, whose type the headers say."""

    document: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    octets: bytes | None = None

    def response(self) -> web.Response:
        if self.octets is not None:
            return web.Response(body=self.octets, status=self.status, headers=self.headers)
        if self.document is None:
            return web.Response(status=self.status, headers=self.headers)
        body = encode(self.document)
        return web.Response(body=body, status=self.status, headers={"Content-Type": JSON, **self.headers})


Handler = Callable[[Call], Awaitable[Answer]]
Stream = Callable[[Call], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """`answers`: the model of each good status; None: no JSON (see `media`)."""

    method: str
    path: str  # below /api/v1
    role: Role | None  # the least that is needed; None: whoever may come at all
    action: str  # stable, for audit log and metrics: queue.replace
    handler: Handler | Stream
    text: str
    answers: Mapping[int, Any]
    query: type[BaseModel] = Nothing
    body: Any = None  # a model
    condition: Condition = Condition.NONE
    statuses: tuple[int, ...] = ()  # further ones that problems may have
    media: str = JSON
    longest: int = USUAL_BODY  # octets of its body
    tag: str = "store"
    tells: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # headers of each good status
    is_frequent: bool = (
        False  # a change that is made all the time: its lines push no others out of the audit log
    )

    @property
    def is_change(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def names(self) -> tuple[str, ...]:
        """Of what stands in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
