"""Define what an edge package provides, and discover all edges: each is the `EDGE` of a module `edge`."""

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

OFF = (None, False, "off", "null", "")  # how a file or an environment variable switches a listener off


class EdgeSettings(BaseModel):
    """Base class of an edge's settings: the section `edges.<name>` of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listeners: dict[str, ListenerSettings]
    workers: int = Field(
        default=1, ge=1, le=256, description="number of processes that share the listeners' ports"
    )

    @field_validator("listeners", mode="before")
    @classmethod
    def _switched_on(cls, listeners: Any) -> Any:
        """Drop listeners that are switched off, as by `reference: off`."""
        if not isinstance(listeners, dict):
            return listeners
        return {name: settings for name, settings in listeners.items() if settings not in OFF}


SettingsT = TypeVar("SettingsT", bound=EdgeSettings)
Listen = Callable[[str, ListenerSettings, SessionFactory], Listener]
Dial = Callable[[str, DialSettings], Dialler]
Page = Callable[[], Mapping[str, Any]]  # returns the page, as JSON
AddPage = Callable[[str, Page], None]
AddTopic = Callable[[str, Topic], None]


@dataclass(frozen=True, slots=True)
class EdgeContext(Generic[SettingsT]):
    """The kit's services for a starting edge."""

    name: str
    settings: SettingsT
    store_url: str  # includes the password: never log it
    metrics: Metrics
    listen: Listen  # makes a listener, which the kit starts once the edge has started
    dial: Dial  # makes a dialler; its name is the label `listener` in metrics
    add_page: AddPage  # adds a health page by its path, "/name"; not available with several workers
    add_topic: AddTopic  # adds a topic of requests through the store, beside `connections` and `close`
    # of the process; the kit adds the edge's own needs
    readiness: Readiness = field(default_factory=Readiness)


class RunningEdge(Protocol):
    """An edge that has started."""

    readiness: Readiness  # what the edge needs to serve requests

    async def stop_taking(self) -> None:
        """Take nothing new from the store. Called when the drain begins, cancelled when its time is over."""

    async def close(self) -> None:
        """Return leased messages and release all resources. Called after all sessions have ended."""


@dataclass(frozen=True, slots=True)
class Edge(Generic[SettingsT]):
    """The declaration of one protocol's edge."""

    name: str  # its key under `edges` in the settings, its label in metrics and logs
    settings: type[SettingsT]
    start: Callable[[EdgeContext[SettingsT]], Awaitable[RunningEdge]]
    example: Callable[[SettingsT], list[str]]  # one command to try per listener, shown by `penstock up`
    flags: tuple[Flag, ...] = ()

    def known_names(self) -> list[str]:
        """Return the names of all edges, sorted. Imports every edge."""
        return sorted({self.name, *edges()})


def edges() -> dict[str, Edge[Any]]:
    """Return all edges by name. Imports the module `edge` of every package of services."""
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
