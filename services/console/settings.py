"""Settings of the console: `console` in the settings file."""

from __future__ import annotations

import hashlib
import ipaddress
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from services.console.contract.roles import Role
from services.kit.config import MAX_SECONDS
from services.kit.net import BindAddress, Networks, TlsSettings
from services.outside.url import MASK
from services.store.timeouts import StoreTimeouts

LOCAL_REFUSED = (
    "without console.tokens or console.proxy the console serves this machine only, with a token of its own, and binds "
    "only a loopback address: set console.tokens or console.proxy, or host 127.0.0.1"
)
WELL_KNOWN = frozenset(hashlib.sha256(token).hexdigest() for token in (b"", b"test"))


def _header_name(name: str) -> str:
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError("must be the name of a header, as X-Forwarded-User")
    return name


def _digest(text: str) -> str:
    if len(text) != 64 or not set(text.lower()) <= set("0123456789abcdef"):
        raise ValueError("must be a SHA-256 digest of 64 hexadecimal digits, as `sha256sum` prints it")
    if text.lower() in WELL_KNOWN:
        raise ValueError("is the digest of an empty or well-known token: generate a token of your own")
    return text.lower()


def _not_empty(name: str) -> str:
    if not name or not name.isprintable():
        raise ValueError("must be a name of printable characters")
    return name


HeaderName = Annotated[str, AfterValidator(_header_name)]
# a weak token can be computed from its digest, so digests are masked
Digest = Annotated[
    str, AfterValidator(_digest), PlainSerializer(lambda _: MASK, when_used="json-unless-none")
]
Name = Annotated[str, AfterValidator(_not_empty)]


class ConsoleSection(BaseModel):
    """A section of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Token(ConsoleSection):
    """A token that callers send: `Authorization: Bearer <token>`."""

    name: Name = Field(description="the caller's name in the audit log")
    role: Role = Field(description="the caller's role; each includes those before it")
    sha256: Digest | None = Field(default=None, description="the token's SHA-256 digest, in hexadecimal")
    file: Path | None = Field(
        default=None,
        description="or a file that contains the token, at least 16 octets; read again when it changes",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.sha256 is None) == (self.file is None):
            raise ValueError("set either sha256 or file")
        return self


class Proxy(ConsoleSection):
    """A proxy that authenticates users: its headers count if the connection comes from its networks."""

    networks: Networks = Field(
        min_length=1, description="networks of the proxy; headers from elsewhere are ignored"
    )
    user_header: HeaderName = Field(default="X-Forwarded-User", description="header with the user's name")
    role_header: HeaderName = Field(
        default="X-Forwarded-Groups", description="header with the user's groups, separated by commas"
    )
    address_header: HeaderName | None = Field(
        default="X-Forwarded-For",
        description="header whose last entry is the client's address, for the audit log; null: none",
    )
    roles: dict[str, Role] = Field(
        default={}, description="role of each group: `view`, `operate` or `admin`; the highest counts"
    )


class ConsoleSettings(ConsoleSection):
    """The console: the web page and the HTTP API described in docs/console.md."""

    enabled: bool = Field(default=True, description="whether `penstock up` starts it beside the edges")
    host: BindAddress = Field(default="127.0.0.1", description="address to bind; :: takes IPv4 too")
    port: int = Field(default=9180, ge=0, le=65535, description="0: any free port, printed in the log")
    tls: TlsSettings | None = Field(default=None, description="unset: plain HTTP")
    tokens: tuple[Token, ...] = Field(
        default=(),
        description="tokens and their roles; without any, and without a proxy: a token that the console creates",
    )
    proxy: Proxy | None = Field(default=None, description="unset: headers do not identify users")
    origins: tuple[str, ...] = Field(
        default=(),
        description="further origins of the console's page, as https://mq.example.org; needed only if a proxy changes "
        "Host and browsers do not send Sec-Fetch-Site. Does not allow pages of other origins to read responses",
    )
    refresh_s: float = Field(
        default=2.0,
        ge=0.1,
        le=60,
        description="interval of polling the store while there are live views",
    )
    max_connections: int = Field(
        default=1000, ge=1, description="maximum number of connections; further ones are closed at once"
    )
    max_connections_per_address: int = Field(
        default=250,
        ge=0,
        description="0: no limit; IPv6 counts by /64. A proxy counts as one address: raise the limit for many clients",
    )
    idle_timeout_s: float = Field(
        default=75.0,
        gt=0,
        le=MAX_SECONDS,
        description="a connection without a complete request header for so long is closed; a proxy should do so before",
    )
    max_streams: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="maximum number of live views; the last tenth is reserved for the roles operate and admin",
    )
    stream_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="a connection whose client reads nothing for so long is closed",
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="after this the outcome of a request is unknown"
    )
    audit_lines: int = Field(
        default=10_000,
        ge=100,
        le=1_000_000,
        description="lines of changes in the store's audit log, and as many of refusals and published messages",
    )
    store: StoreTimeouts = StoreTimeouts()

    @model_validator(mode="after")
    def _is_reachable_without_identities(self) -> Self:
        if not self.is_local or ipaddress.ip_address(self.host).is_loopback:
            return self
        raise ValueError(LOCAL_REFUSED)

    @field_validator("tokens")
    @classmethod
    def _check_distinct(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        for what, values in (
            ("name", [token.name for token in tokens]),
            ("digest", [token.sha256 for token in tokens if token.sha256 is not None]),
            ("file", [str(token.file) for token in tokens if token.file is not None]),
        ):
            if len(set(values)) < len(values):
                raise ValueError(f"two tokens have the same {what}")
        return tokens

    @property
    def is_local(self) -> bool:
        """Return whether neither tokens nor a proxy are configured, so that local_token applies."""
        return not self.tokens and self.proxy is None
