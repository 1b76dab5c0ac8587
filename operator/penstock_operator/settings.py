"""The operator's settings, read from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pydantic_settings
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kit.config import TracingSettings
from services.outside.url import BadUrl
from services.store.redis import StoreUrl, check_files

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
NAMESPACE = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
ALL_NAMESPACES = "*"
STORE_NAMES = ("PENSTOCK_STORE__URL", "REDIS_URL")  # in order of precedence
DEFAULT_STORE = "redis://127.0.0.1:6379/0"


class SettingsError(Exception):
    """Invalid settings, one line each."""


class OperatorSettings(BaseSettings):
    """The environment variables PENSTOCK_OPERATOR_<NAME>, listed in docs/kubernetes.md."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="PENSTOCK_OPERATOR_")

    namespaces: str = Field(
        "", description="namespaces to watch, separated by commas; *: all; '': the pod's own"
    )
    discover_namespaces: str = Field(
        "",
        description="namespaces of other releases whose edges become peers, separated by commas; not watched otherwise",
    )
    store: str = Field("penstock", description="label penstock.dev/store of the edges of this store")
    rqprc_configmap: str = Field("", description="ConfigMap to write .rqprc to; '': none")
    dataset_configmap: str = Field(
        "", description="ConfigMap that records the store's dataset; '': none, a restart forgets it"
    )
    health_host: str = Field(
        "127.0.0.1", description="address of /metrics, /healthz and /readyz; 0.0.0.0: all"
    )
    health_port: int = Field(
        9161, ge=0, le=65535, description="port of these pages; 0: any free port, which is logged"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="lowest level that is logged"
    )
    log_format: Literal["json", "text"] = Field("json", description="format of log records")
    sweep_s: float = Field(60.0, ge=1, le=86400, description="interval between sweeps over all resources")
    delete_timeout_s: float = Field(
        120.0, ge=1, le=86400, description="how long the deletion of a Queue waits for an unavailable store"
    )
    queue_metrics: bool = Field(False, description="export queue metrics by name instead of only sums")
    max_queues: int = Field(
        200, ge=1, le=10_000, description="queues with metrics by name; the rest is summed as _other"
    )
    accept_loss: bool = Field(
        False, description="set up a domain again that came back empty while the registry did not"
    )

    @field_validator("namespaces")
    @classmethod
    def _are_all_or_some(cls, text: str) -> str:
        names = _split(text)
        if ALL_NAMESPACES in names and len(names) > 1:
            raise ValueError("use either * for all namespaces, or names")
        _check_names([name for name in names if name != ALL_NAMESPACES], ", or *")
        return ",".join(names)

    @field_validator("discover_namespaces")
    @classmethod
    def _are_names(cls, text: str) -> str:
        _check_names(_split(text))
        return ",".join(_split(text))

    @property
    def own_namespace(self) -> str:
        """Return the operator's own namespace."""
        given = os.environ.get("POD_NAMESPACE")
        if given:
            return given
        return NAMESPACE_FILE.read_text("utf-8").strip() if NAMESPACE_FILE.exists() else "default"

    @property
    def release(self) -> str:
        """Return namespace/name of the release."""
        return f"{self.own_namespace}/{self.store}"

    @property
    def watched(self) -> tuple[str, ...]:
        """Return the watched namespaces; () = all."""
        if self.namespaces == ALL_NAMESPACES:
            return ()
        return tuple(self.namespaces.split(",")) if self.namespaces else (self.own_namespace,)

    @property
    def discovered(self) -> tuple[str, ...]:
        """Return the namespaces that are not watched but whose EndpointSlices are listed."""
        watched = self.watched
        return tuple(name for name in _split(self.discover_namespaces) if watched and name not in watched)


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_names(names: Iterable[str], otherwise: str = "") -> None:
    """Raise ValueError for an invalid namespace name."""
    if bad := [name for name in names if not NAMESPACE.fullmatch(name)]:
        raise ValueError(
            f"{bad[0]!r} is not the name of a namespace: write full names, separated by commas{otherwise}"
        )


class Environment(BaseSettings):
    """Settings shared with other processes: PENSTOCK_<SECTION>__<NAME> of the environment; no file is read."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_prefix="PENSTOCK_", env_nested_delimiter="__"
    )

    tracing: TracingSettings = TracingSettings()


def load() -> OperatorSettings:
    """Read the settings. Raises SettingsError."""
    try:
        return OperatorSettings()
    except ValidationError as error:
        lines = (f"PENSTOCK_OPERATOR_{str(each['loc'][0]).upper()}: {each['msg']}" for each in error.errors())
        raise SettingsError("\n".join(lines)) from None


def tracing_settings() -> TracingSettings:
    """Read the settings for tracing. Raises SettingsError."""
    try:
        return Environment().tracing
    except ValidationError as error:
        lines = (
            f"PENSTOCK_{'__'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors()
        )
        raise SettingsError("\n".join(lines)) from None
    except pydantic_settings.SettingsError as error:  # such as headers that are not JSON
        raise SettingsError(f"environment: {error}") from None


def is_store_configured() -> bool:
    """Return whether the environment names a store."""
    return any(os.environ.get(name) for name in STORE_NAMES)


def store_url() -> str:
    """Return the store's URL from the environment. Raises SettingsError."""
    name = next(filter(os.environ.get, STORE_NAMES), None)
    url = os.environ[name] if name else DEFAULT_STORE
    try:
        check_files(StoreUrl.parse(url))
    except BadUrl as error:
        raise SettingsError(f"{name}: {error}") from None
    return url
