"""Load the settings of a process into one frozen object: defaults < file < environment < flags."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from services.kit.config.flags import GivenFlag, names_of, tree_of
from services.kit.config.layers import (
    MAX_SECONDS,
    Layers,
    SettingsError,
    describe_errors,
    merge,
    read_environment,
    read_file,
)
from services.kit.config.lists import split_lists
from services.kit.config.secret import SECRET_FAULT, SecretText, SecretUrl, mask
from services.outside.url import BadUrl, parse_url

SettingsT_co = TypeVar("SettingsT_co", bound=BaseModel, covariant=True)
SectionT = TypeVar("SectionT", bound=BaseModel)

__all__ = ["GlobalSettings", "SettingsError", "load"]

DEFAULT_FILE = Path("penstock.yaml")
DEFAULT_STORE = "redis://127.0.0.1:6379/0"


class HasSettings(Protocol[SettingsT_co]):
    """The part of `services.kit.edge.Edge` that concerns settings."""

    @property
    def name(self) -> str:
        """Return the edge's key under `edges`."""

    @property
    def settings(self) -> type[SettingsT_co]:
        """Return the model of the edge's settings."""

    def known_names(self) -> list[str]:
        """Return the names of all edges, sorted."""


class Section(BaseModel):
    """Base class of sections: unknown settings are rejected, and values are immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreSettings(Section):
    """The store of the messages."""

    url: SecretUrl | None = Field(
        default=None, description="Redis or Valkey; default: `up` starts its own server"
    )
    server: Path | None = Field(
        default=None, description="server program for `up`; default: the one in the wheel"
    )
    data_dir: Path = Field(
        default=Path("penstock-data"), description="data directory of the server that `up` starts"
    )


class HealthSettings(Section):
    """The server of /metrics, /healthz and /readyz."""

    host: str = Field(default="127.0.0.1", description="address to bind; 0.0.0.0: all; :: accepts IPv4 too")
    port: int = Field(default=9161, ge=0, le=65535, description="0: any free port, named in the log")
    may_move: ClassVar[bool] = False


class MovableHealthSettings(HealthSettings):
    """Health settings whose port no layer sets: if it is in use, any free port replaces it."""

    may_move: ClassVar[bool] = True


class LogSettings(Section):
    """Logging, to standard error."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="lowest level that is logged"
    )
    format: Literal["json", "text"] = Field(
        default="json", description="one event per line, for programs or for people"
    )


class MetricsSettings(Section):
    """Metrics per queue."""

    queues: bool = Field(
        default=False,
        description="count messages in, out, settled and refused, and octets, per queue",
    )
    max_queues: int = Field(
        default=200,
        ge=1,
        le=10_000,
        description="queues with a label of their own; the rest is summed up as `_other`",
    )
    queue_latencies: bool = Field(
        default=False,
        description="with `queues`: histograms of the time until messages were durable, and of how long they waited",
    )


_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*", re.ASCII)
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")
_URL = re.compile(r"[!-~]+")  # anything else would need escaping
_COLLECTOR = "http://collector:4318"


class TracingSettings(Section):
    """Traces of single messages, by OTLP over HTTP (docs/tracing.md)."""

    endpoint: SecretUrl | None = Field(
        default=None,
        description="the collector, as http://host:4318; /v1/traces is appended to its path, as OpenTelemetry does "
        "for OTEL_EXPORTER_OTLP_ENDPOINT; default: tracing is off",
    )
    traces_endpoint: SecretUrl | None = Field(
        default=None,
        description="instead of `endpoint`: the whole URL, used as it is, as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    )
    ratio: float = Field(
        default=1.0, ge=0, le=1, description="share of the messages without trace context that begin a trace"
    )
    most_per_s: float = Field(
        default=50.0, gt=0, le=100_000, description="maximum traces begun per second, in each process"
    )
    most_followed_per_s: float = Field(
        default=2000.0,
        gt=0,
        le=100_000,
        description="maximum messages per second of existing traces that are traced on, in each process",
    )
    headers: dict[str, SecretText] = Field(
        default={}, description="headers of every request, such as a token; secret"
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of CA certificates (root or intermediate) instead of the system's",
    )
    queue: int = Field(
        default=4096, ge=1, le=1_000_000, description="maximum spans that wait; more are dropped"
    )
    batch: int = Field(default=256, ge=1, le=10_000, description="maximum spans in one request")
    interval_s: float = Field(
        default=1.0, gt=0, le=MAX_SECONDS, description="how long spans are collected for one request"
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=MAX_SECONDS, description="for one request, with all its retries"
    )

    @field_validator("endpoint", "traces_endpoint", mode="before")
    @classmethod
    def _is_http(cls, endpoint: object) -> object:
        if endpoint is None or isinstance(endpoint, SecretUrl):
            return endpoint
        why = f"must be a URL such as {_COLLECTOR}"
        if isinstance(endpoint, str):
            try:
                url = parse_url(endpoint, _COLLECTOR)
            except BadUrl as error:
                raise PydanticCustomError(SECRET_FAULT, "{why}", {"why": str(error)}) from None
            if url.scheme in ("http", "https") and len(url.hosts) == 1 and _URL.fullmatch(endpoint):
                return endpoint
        raise PydanticCustomError(SECRET_FAULT, "{why}", {"why": why})

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, SecretText]) -> dict[str, SecretText]:
        """Reject headers that HTTP cannot send. Done here because this error does not show their values."""
        for name, value in headers.items():
            if not _HEADER.fullmatch(name):
                raise ValueError("a header's name must consist of letters, digits and hyphens")
            if not _VISIBLE.fullmatch(value.reveal()):
                raise ValueError(
                    f"the value of {name} must consist of visible ASCII characters, without a line end"
                )
        return headers

    @property
    def is_on(self) -> bool:
        """Return whether a collector is set."""
        return self.endpoint is not None or self.traces_endpoint is not None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch > self.queue:
            raise ValueError("batch must be at most queue")
        if self.endpoint is not None and self.traces_endpoint is not None:
            raise ValueError("set endpoint or traces_endpoint, not both")
        return self


class DrainSettings(Section):
    """Shutdown after SIGTERM. A pod's grace period must be longer than the sum of the three."""

    grace_s: float = Field(
        default=0.0, ge=0, le=MAX_SECONDS, description="keep serving, unready, while load balancers notice"
    )
    spread_s: float = Field(
        default=2.0, ge=0, le=MAX_SECONDS, description="time over which sessions are asked to end"
    )
    timeout_s: float = Field(
        default=30.0, ge=0, le=MAX_SECONDS, description="time to wait for sessions; then they are reset"
    )


class LimitsSettings(Section):
    """Limits of a process and its workers together."""

    max_input_bytes: int = Field(
        default=256 << 20, ge=1 << 20, description="total of unfinished input and of open transactions"
    )
    max_output_bytes: int = Field(
        default=256 << 20, ge=1 << 20, description="total of replies that clients do not read"
    )


class GlobalSettings(BaseSettings):
    """The content of `penstock.yaml`. Made by `load`; the settings of an edge are checked by `edge`."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="PENSTOCK_", env_nested_delimiter="__"
    )

    store: StoreSettings = StoreSettings()
    health: HealthSettings = HealthSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    drain: DrainSettings = DrainSettings()
    limits: LimitsSettings = LimitsSettings()
    edges: dict[str, dict[str, Any]] = Field(default={}, description="each edge's own settings, by name")
    sysv: dict[str, Any] = Field(default={}, description="the System V bridge's own settings")
    console: dict[str, Any] = Field(default={}, description="the console's own settings")
    _layers: Layers | None = PrivateAttr(default=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use no sources of pydantic: `load` merges the layers, and knows the origin of each value."""
        return (init_settings,)

    @property
    def store_url(self) -> str:
        """Return the store's URL, with its password."""
        return self.store.url.reveal() if self.store.url is not None else DEFAULT_STORE

    def edge(self, edge: HasSettings[SettingsT_co]) -> SettingsT_co:
        """Return an edge's settings: its section merged over its defaults.

        Raises SettingsError, also for sections of unknown edges.
        """
        self._refuse_unknown_edges(edge)
        try:
            defaults = _own_defaults(edge.settings.model_validate({}))
        except ValidationError:  # a setting without a default must be set
            defaults = {}
        try:
            own = split_lists(edge.settings, self.edges.get(edge.name, {}))
            return edge.settings.model_validate(merge(defaults, own))
        except ValidationError as error:
            raise SettingsError(
                describe_errors(error, edge.settings, self._layers, ("edges", edge.name))
            ) from None

    def section(self, model: type[SectionT], name: str, given: Mapping[str, Any]) -> SectionT:
        """Return a section checked by its own model; `given` replaces fields of it. Raises SettingsError."""
        values = {**split_lists(model, getattr(self, name)), **given}
        try:
            return model.model_validate(values)
        except ValidationError as error:
            raise SettingsError(describe_errors(error, model, self._layers, (name,))) from None

    def _refuse_unknown_edges(self, asked: HasSettings[BaseModel]) -> None:
        """Raise SettingsError for a section of an unknown edge, which would be ignored otherwise."""
        if self.edges.keys() <= {asked.name}:
            return
        known = asked.known_names()  # imports every edge
        lines = [self._unknown_edge(name, known) for name in sorted(self.edges.keys() - set(known))]
        if lines:
            raise SettingsError(lines)

    def _unknown_edge(self, name: str, known: list[str]) -> str:
        origin = self.origin("edges", name)
        source = f" (from {origin})" if origin else ""
        return f"edges.{name}: unknown; allowed: {', '.join(known)}{source}"

    def origin(self, *path: str) -> str | None:
        """Return the source of a setting: the command line, a variable or the file; None for a default."""
        return self._layers.origin(path) if self._layers is not None else None

    def masked(self) -> dict[str, Any]:
        """Return all settings as JSON, with `***` for secrets."""
        shown: dict[str, Any] = mask(self.model_dump(mode="json"))
        return shown


def load(
    file: Path | None = None, flags: Mapping[str, Any] | None = None, given: Sequence[GivenFlag] = ()
) -> GlobalSettings:
    """Load and merge all layers. `flags` is a tree like the file; the edges' own flags, `given`, override it.

    The default file is the one that PENSTOCK_CONFIG names, else `penstock.yaml` if it exists. Raises SettingsError.
    """
    named = os.environ.get("PENSTOCK_CONFIG")
    path = file or Path(named or DEFAULT_FILE)
    is_wanted = file is not None or bool(named) or path.exists()
    layers = Layers(
        flags=merge(flags or {}, tree_of(given)),
        environment=read_environment(GlobalSettings),
        file=read_file(path) if is_wanted else {},
        file_name=str(path),
        flag_names=names_of(given),
    )
    try:
        settings = GlobalSettings(**layers.merged())
    except ValidationError as error:
        raise SettingsError(describe_errors(error, GlobalSettings, layers)) from None
    settings._layers = layers  # noqa: SLF001 - of its own class
    return settings


def _own_defaults(section: BaseModel) -> dict[str, Any]:
    """Return the defaults that an edge sets for its sections, beyond those of the sections' types."""
    plain = type(section).model_construct()
    return {
        name: _own_defaults(value) if isinstance(value, BaseModel) else dumped
        for (name, value), dumped in zip(section, section.model_dump().values(), strict=True)
        if isinstance(value, BaseModel | dict) or value != getattr(plain, name)
    }
