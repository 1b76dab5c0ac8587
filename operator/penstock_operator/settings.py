"""What the operator is told: by the environment, as a pod is."""

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
STORE_NAMES = ("PENSTOCK_STORE__URL", "REDIS_URL")  # the first that is there
DEFAULT_STORE = "redis://127.0.0.1:6379/0"


class SettingsError(Exception):
    """Each line says what is wrong, and what to write."""


class OperatorSettings(BaseSettings):
    """PENSTOCK_OPERATOR_<NAME> of the environment; docs/kubernetes.md lists them."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="PENSTOCK_OPERATOR_")

    namespaces: str = Field(
        "", description="whose resources are seen to, with commas between; * = all; '' = the pod's own"
    )
    discover_namespaces: str = Field(
        "",
        description="where other releases are whose edges become peers, with commas between; no resources are seen to",
    )
    store: str = Field("penstock", description="label penstock.dev/store of the edges of our own store")
    rqprc_configmap: str = Field("", description="the ConfigMap that is given .rqprc; '' = none")
    dataset_configmap: str = Field(
        "", description="the ConfigMap that keeps which data the store held; '' = none: a restart forgets it"
    )
    health_host: str = Field(
        "127.0.0.1", description="address of /metrics, /healthz and /readyz; 0.0.0.0: all"
    )
    health_port: int = Field(9161, ge=0, le=65535, description="0: any free one, named in the log")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="and whatever is worse"
    )
    log_format: Literal["json", "text"] = Field("json", description="for programs, or for people")
    sweep_s: float = Field(60.0, ge=1, le=86400, description="between two passes over everything")
    delete_timeout_s: float = Field(
        120.0, ge=1, le=86400, description="how long a resource that goes waits for a store that is away"
    )
    queue_metrics: bool = Field(
        False, description="metrics tell by name how queues stand, not only all of them together"
    )
    max_queues: int = Field(
        200, ge=1, le=10_000, description="of so many by name, the rest is summed up as _other"
    )
    accept_loss: bool = Field(
        False, description="a domain that came back empty alone, without the registry, begins anew"
    )

    @field_validator("namespaces")
    @classmethod
    def _are_all_or_some(cls, text: str) -> str:
        names = _split(text)
        if ALL_NAMESPACES in names and len(names) > 1:
            raise ValueError("write * for all namespaces, or name them: not both")
        _check_names([name for name in names if name != ALL_NAMESPACES], ", or *")
        return ",".join(names)

    @field_validator("discover_namespaces")
    @classmethod
    def _are_names(cls, text: str) -> str:
        _check_names(_split(text))
        return ",".join(_split(text))

    @property
    def own_namespace(self) -> str:
        """Where the operator itself is."""
        told = os.environ.get("POD_NAMESPACE")
        if told:
            return told
        return NAMESPACE_FILE.read_text("utf-8").strip() if NAMESPACE_FILE.exists() else "default"

    @property
    def release(self) -> str:
        """Namespace and name."""
        return f"{self.own_namespace}/{self.store}"

    @property
    def watched(self) -> tuple[str, ...]:
        """Namespaces; () = all."""
        if self.namespaces == ALL_NAMESPACES:
            return ()
        return tuple(self.namespaces.split(",")) if self.namespaces else (self.own_namespace,)

    @property
    def discovered(self) -> tuple[str, ...]:
        """Return the namespaces in which only EndpointSlices are read, beside those that are watched."""
        watched = self.watched
        return tuple(name for name in _split(self.discover_namespaces) if watched and name not in watched)


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_names(names: Iterable[str], otherwise: str = "") -> None:
    """Raise ValueError for what cannot be the name of a namespace."""
    if bad := [name for name in names if not NAMESPACE.fullmatch(name)]:
        raise ValueError(
            f"{bad[0]!r} is no name of a namespace: write them in full, with commas between{otherwise}"
        )


class Environment(BaseSettings):
    """What the operator is told as all processes are: PENSTOCK_<SECTION>__<NAME>. It reads no file."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_prefix="PENSTOCK_", env_nested_delimiter="__"
    )

    tracing: TracingSettings = TracingSettings()


def load() -> OperatorSettings:
    """Raises SettingsError."""
    try:
        return OperatorSettings()
    except ValidationError as error:
        lines = (f"PENSTOCK_OPERATOR_{str(each['loc'][0]).upper()}: {each['msg']}" for each in error.errors())
        raise SettingsError("\n".join(lines)) from None


def tracing_settings() -> TracingSettings:
    """Raises SettingsError."""
    try:
        return Environment().tracing
    except ValidationError as error:
        lines = (
            f"PENSTOCK_{'__'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors()
        )
        raise SettingsError("\n".join(lines)) from None
    except pydantic_settings.SettingsError as error:  # such as headers that are no JSON
        raise SettingsError(f"environment: {error}") from None


def is_store_told() -> bool:
    return any(os.environ.get(name) for name in STORE_NAMES)


def store_url() -> str:
    """As the edges are told it. Raises SettingsError."""
    name = next(filter(os.environ.get, STORE_NAMES), None)
    url = os.environ[name] if name else DEFAULT_STORE
    try:
        check_files(StoreUrl.parse(url))
    except BadUrl as error:
        raise SettingsError(f"{name}: {error}") from None
    return url
