"""A route of the API. The application and the OpenAPI document are built from one table of routes, so they agree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from services.console.access.authorization import Caller
from services.console.contract.roles import Role
from services.console.contract.shape import JSON, Nothing, encode
from services.console.core.console import Console
from services.console.http.memory_budget import Share

DEFAULT_BODY = 1 << 20  # octets


class Condition(Enum):
    """The cases in which a change requires `If-Match`."""

    NONE = "none"
    MATCH = "match"  # required
    REPLACE = "replace"  # required to replace; `If-None-Match: *` creates only
    UNLESS_DRY = "unless dry"  # required, except for a dry run


@dataclass(frozen=True, slots=True)
class Call:
    """A validated request; `query` and `body` are instances of the route's models."""

    console: Console
    request: web.Request
    caller: Caller
    path: Mapping[str, str]  # surrogateescape: any octets
    query: Any
    body: Any
    share: Share
    identify: Callable[[], Caller]  # again; raises Problem if the credentials are no longer valid
    detail: dict[str, Any] = field(default_factory=dict)  # for the audit log

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the request's headers."""
        return self.request.headers


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: `document` as JSON, or `octets` with the type given in the headers."""

    document: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    octets: bytes | None = None

    def response(self) -> web.Response:
        """Return the aiohttp response."""
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
    """A route. `answers`: the model of each success status; None: not JSON (see `media`)."""

    method: str
    path: str  # below /api/v1
    role: Role | None  # required; None: any
    action: str  # stable, for audit log and metrics: queue.replace
    handler: Handler | Stream
    text: str
    answers: Mapping[int, Any]
    query: type[BaseModel] = Nothing
    body: Any = None  # a model
    condition: Condition = Condition.NONE
    statuses: tuple[int, ...] = ()  # of further problems
    media: str = JSON
    longest: int = DEFAULT_BODY  # octets of the body
    tag: str = "store"
    response_headers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # by status
    is_frequent: bool = False  # its lines do not push others out of the audit log

    @property
    def is_change(self) -> bool:
        """Return whether the route changes something."""
        return self.method not in ("GET", "HEAD")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the path's parameters."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
