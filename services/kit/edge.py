"""What an edge package shows to the rest: one `EDGE` in its module `edge`, found by looking, listed nowhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

import services
from services.kit.config.flags import Flag
from services.kit.metrics.metrics import Metrics, Topic
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.net.listener import Listener, ListenerSettings
from services.kit.readiness import Readiness
from services.kit.session.session import SessionFactory
from services.kit.startup import paused_gc

OFF = (None, False, "off", "null", "")  # as a file or an environment variable may say it


class EdgeSettings(BaseModel):
    """The base of every edge's own settings: what stands under `edges.<name>` in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listeners: dict[str, ListenerSettings]
    workers: int = Field(default=1, ge=1, le=256, description="processes that share the listeners' ports")

    @field_validator("listeners", mode="before")
    @classmethod
    def _switched_on(cls, listeners: Any) -> Any:
        """A listener that stands among the defaults can be switched off: `reference: off`."""
        if not isinstance(listeners, dict):
            return listeners
        return {name: settings for name, settings in listeners.items() if settings not in OFF}


SettingsT = TypeVar("SettingsT", bound=EdgeSettings)
Listen = Callable[[str, ListenerSettings, SessionFactory], Listener]
Dial = Callable[[str, DialSettings], Dialler]
Page = Callable[[], Mapping[str, Any]]  # what stands there, as JSON
AddPage = Callable[[str, Page], None]
AddTopic = Callable[[str, Topic], None]


@dataclass(frozen=True, slots=True)
class EdgeContext(Generic[SettingsT]):
    """What the kit gives an edge when it starts."""

    name: str
    settings: SettingsT
    store_url: str  # with its password: never log it
    metrics: Metrics
    listen: Listen  # makes a listener; the kit starts it once the edge has started
    dial: Dial  # makes a dialler for connections to others; the name is its label in metrics, as a listener's is
    add_page: AddPage  # beside /metrics and the others, as "/name"; a process that is one of several workers has none
    add_topic: AddTopic  # what this edge can be asked through the store, beside `connections` and `close`
    readiness: Readiness = field(
        default_factory=Readiness
    )  # of the process; the kit adds what the edge needs


class RunningEdge(Protocol):
    """What an edge gives back."""

    readiness: Readiness  # what the edge needs to serve requests

    async def stop_taking(self) -> None:
        """The drain has begun: take nothing new from the store. Cancelled when the drain's time is over."""

    async def close(self) -> None:
        """All sessions are over: give back what is held, let go of everything."""


@dataclass(frozen=True, slots=True)
class Edge(Generic[SettingsT]):
    """One protocol's edge."""

    name: str  # its key under `edges` in the settings, its label in metrics and logs
    settings: type[SettingsT]
    start: Callable[[EdgeContext[SettingsT]], Awaitable[RunningEdge]]
    example: Callable[[SettingsT], list[str]]  # one line to try per listener, shown by `penstock up`
    flags: tuple[Flag, ...] = ()

    def known_names(self) -> list[str]:
        """Return the names of all edges, sorted. Imports every edge."""
        return sorted({self.name, *edges()})


def edges() -> dict[str, Edge[Any]]:
    """Every edge there is: the `EDGE` of each `services.<package>.edge` that has one, by name."""
    found: dict[str, Edge[Any]] = {}
    with paused_gc():
        for package in pkgutil.iter_modules(services.__path__, "services."):
            module = f"{package.name}.edge"
            if not package.ispkg or find_spec(module) is None:
                continue
            edge = getattr(importlib.import_module(module), "EDGE", None)
            if isinstance(edge, Edge):
                found[edge.name] = edge
    return found
