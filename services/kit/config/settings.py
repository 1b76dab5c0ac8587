"""All settings of a process, in one frozen object: defaults < file < environment < flags."""

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
    """An edge, as far as its settings are concerned (`services.kit.edge.Edge`)."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> type[SettingsT_co]: ...
    def known_names(self) -> list[str]:
        """Return the names of all edges, sorted."""


class Section(BaseModel):
    """Every section refuses what it does not know, and nothing changes after the start."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreSettings(Section):
    """Where the messages are."""

    url: SecretUrl | None = Field(default=None, description="Redis or Valkey; none: `up` starts its own")
    server: Path | None = Field(
        default=None, description="server program for `up`; none: the one in the wheel"
    )
    data_dir: Path = Field(default=Path("penstock-data"), description="where the own server keeps its data")


class HealthSettings(Section):
    """Where /metrics, /healthz and /readyz are."""

    host: str = Field(default="127.0.0.1", description="address to bind; 0.0.0.0: all; :: takes IPv4 too")
    port: int = Field(default=9161, ge=0, le=65535, description="0: any free one, named in the log")
    may_move: ClassVar[bool] = False


class MovableHealthSettings(HealthSettings):
    """The same, where no layer sets the port: any free one replaces it if another program has it."""

    may_move: ClassVar[bool] = True


class LogSettings(Section):
    """What is logged, to standard error."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="and whatever is worse"
    )
    format: Literal["json", "text"] = Field(
        default="json", description="one event a line, for programs or people"
    )


class MetricsSettings(Section):
    """What /metrics tells of each queue, by name, beside what it tells of the process."""

    queues: bool = Field(
        default=False,
        description="what the process does with each queue: messages in, out, settled, refused, octets",
    )
    max_queues: int = Field(
        default=200, ge=1, le=10_000, description="so many have a name, the rest is summed up as `_other`"
    )
    queue_latencies: bool = Field(
        default=False,
        description="with `queues`: histograms of the time until messages were durable, and of how long they waited",
    )


_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*", re.ASCII)
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")
_URL = re.compile(r"[!-~]+")  # what else would be escaped
_COLLECTOR = "http://collector:4318"


class TracingSettings(Section):
    """Traces of single messages, by OTLP over HTTP (docs/tracing.md)."""

    endpoint: SecretUrl | None = Field(
        default=None,
        description="the collector, as http://host:4318; /v1/traces is appended to its path, as OpenTelemetry does "
        "for OTEL_EXPORTER_OTLP_ENDPOINT; none: nothing is traced",
    )
    traces_endpoint: SecretUrl | None = Field(
        default=None,
        description="instead of `endpoint`: the whole URL, used as it is, as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    )
    ratio: float = Field(
        default=1.0, ge=0, le=1, description="how many of the messages that bring no context begin a trace"
    )
    most_per_s: float = Field(
        default=50.0, gt=0, le=100_000, description="traces begun a second at most, in each process"
    )
    most_followed_per_s: float = Field(
        default=2000.0,
        gt=0,
        le=100_000,
        description="messages a second at most that are in a trace already and traced on, in each process",
    )
    headers: dict[str, SecretText] = Field(
        default={}, description="sent with every request, as a token; secret"
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of authorities, root or intermediate ones, in place of the machine's",
    )
    queue: int = Field(
        default=4096, ge=1, le=1_000_000, description="spans that wait; beyond it they are dropped"
    )
    batch: int = Field(default=256, ge=1, le=10_000, description="spans in one request at most")
    interval_s: float = Field(
        default=1.0, gt=0, le=MAX_SECONDS, description="how long a span waits for others"
    )
    timeout_s: float = Field(
        default=5.0, gt=0, le=MAX_SECONDS, description="for one request, tried again or not"
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
        """Here, where no value is shown: whatever cannot send them says what they are."""
        for name, value in headers.items():
            if not _HEADER.fullmatch(name):
                raise ValueError("a header's name has letters, digits and hyphens")
            if not _VISIBLE.fullmatch(value.reveal()):
                raise ValueError(
                    f"the value of {name} has visible characters of ASCII and no line end behind them"
                )
        return headers

    @property
    def is_on(self) -> bool:
        return self.endpoint is not None or self.traces_endpoint is not None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch > self.queue:
            raise ValueError("batch must be at most queue")
        if self.endpoint is not None and self.traces_endpoint is not None:
            raise ValueError("give endpoint or traces_endpoint, not both")
        return self


class DrainSettings(Section):
    """The way out after SIGTERM: a pod's grace period must be longer than the three together."""

    grace_s: float = Field(
        default=0.0, ge=0, le=MAX_SECONDS, description="keep serving, unready, while endpoints drain"
    )
    spread_s: float = Field(
        default=2.0, ge=0, le=MAX_SECONDS, description="over which many sessions are asked to end"
    )
    timeout_s: float = Field(
        default=30.0, ge=0, le=MAX_SECONDS, description="after which what is left is reset"
    )


class LimitsSettings(Section):
    """Bounds of a whole process group."""

    max_input_bytes: int = Field(
        default=256 << 20, ge=1 << 20, description="unfinished input and what open transactions keep, in all"
    )
    max_output_bytes: int = Field(
        default=256 << 20, ge=1 << 20, description="replies that clients do not read, in all"
    )


class GlobalSettings(BaseSettings):
    """What `penstock.yaml` may hold. Made by `load`; the edges' own parts are checked by `edge`."""

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
        """The layers are put together by `load`, which also knows which of them said what."""
        return (init_settings,)

    @property
    def store_url(self) -> str:
        """With its password."""
        return self.store.url.reveal() if self.store.url is not None else DEFAULT_STORE

    def edge(self, edge: HasSettings[SettingsT_co]) -> SettingsT_co:
        """Return an edge's own settings: its defaults, and over them what stands under its name.

        Raises SettingsError, also for a name that no edge has.
        """
        self._refuse_unknown_edges(edge)
        try:
            defaults = _own_defaults(edge.settings.model_validate({}))
        except ValidationError:  # something has no default: then the settings must say it
            defaults = {}
        try:
            said = split_lists(edge.settings, self.edges.get(edge.name, {}))
            return edge.settings.model_validate(merge(defaults, said))
        except ValidationError as error:
            raise SettingsError(
                describe_errors(error, edge.settings, self._layers, ("edges", edge.name))
            ) from None

    def section(self, model: type[SectionT], name: str, given: Mapping[str, Any]) -> SectionT:
        """A section that its own model checks, and over it what a command was given: `given` replaces each field that
        it names. Raises SettingsError."""
        said = {**split_lists(model, getattr(self, name)), **given}
        try:
            return model.model_validate(said)
        except ValidationError as error:
            raise SettingsError(describe_errors(error, model, self._layers, (name,))) from None

    def _refuse_unknown_edges(self, asked: HasSettings[BaseModel]) -> None:
        """Raise SettingsError for a mistyped name: its settings would be ignored in silence."""
        if self.edges.keys() <= {asked.name}:
            return
        known = asked.known_names()  # imports every edge
        lines = [self._unknown_edge(name, known) for name in sorted(self.edges.keys() - set(known))]
        if lines:
            raise SettingsError(lines)

    def _unknown_edge(self, name: str, known: list[str]) -> str:
        said_by = self.origin("edges", name)
        return f"edges.{name}: unknown; allowed: {', '.join(known)}" + (
            f" (from {said_by})" if said_by else ""
        )

    def origin(self, *path: str) -> str | None:
        """Who said what stands at `path`: the command line, a variable, the file; None for a default."""
        return self._layers.origin(path) if self._layers is not None else None

    def masked(self) -> dict[str, Any]:
        """Everything, ready to be printed, with `***` for the secrets."""
        shown: dict[str, Any] = mask(self.model_dump(mode="json"))
        return shown


def load(
    file: Path | None = None, flags: Mapping[str, Any] | None = None, given: Sequence[GivenFlag] = ()
) -> GlobalSettings:
    """Put the layers together. `flags` is nested like the file; over it stand the edges' own flags, `given`.

    Without `file`, PENSTOCK_CONFIG names it, or it is `penstock.yaml` here if there is one. Raises SettingsError.
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
    settings._layers = layers  # noqa: SLF001 - its own class method
    return settings


def _own_defaults(section: BaseModel) -> dict[str, Any]:
    """Return what the types of the sections do not say by themselves, so that a section knows what was set."""
    plain = type(section).model_construct()
    return {
        name: _own_defaults(value) if isinstance(value, BaseModel) else dumped
        for (name, value), dumped in zip(section, section.model_dump().values(), strict=True)
        if isinstance(value, BaseModel | dict) or value != getattr(plain, name)
    }
