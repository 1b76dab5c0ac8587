"""What may be said of the console: `console` in the file."""

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
    "without tokens or a proxy the console serves this machine only, with a token of its own, so it binds only a "
    "loopback address: say console.tokens or console.proxy, or host 127.0.0.1"
)
KNOWN_TO_ALL = frozenset(hashlib.sha256(token).hexdigest() for token in (b"", b"test"))


def _header_name(name: str) -> str:
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError("write the name of a header, as in X-Forwarded-User")
    return name


def _digest(text: str) -> str:
    if len(text) != 64 or not set(text.lower()) <= set("0123456789abcdef"):
        raise ValueError("write a SHA-256 digest as 64 hexadecimal digits, as `sha256sum` does")
    if text.lower() in KNOWN_TO_ALL:
        raise ValueError(
            "this is the digest of no token at all, or of one out of a sample: make one of your own"
        )
    return text.lower()


def _not_empty(name: str) -> str:
    if not name or not name.isprintable():
        raise ValueError("write a name of printable characters")
    return name


HeaderName = Annotated[str, AfterValidator(_header_name)]
# a digest tells a weak token to whoever has time: nobody is shown one
Digest = Annotated[
    str, AfterValidator(_digest), PlainSerializer(lambda _: MASK, when_used="json-unless-none")
]
Name = Annotated[str, AfterValidator(_not_empty)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Token(Part):
    """Somebody who comes with a token: `Authorization: Bearer <token>`."""

    name: Name = Field(description="who that is, in the audit log")
    role: Role = Field(description="what he may do; each role may what those before it may")
    sha256: Digest | None = Field(default=None, description="the token's SHA-256 digest, in hexadecimal")
    file: Path | None = Field(
        default=None,
        description="or a file that holds the token, 16 octets at least; it is read again when it changes",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.sha256 is None) == (self.file is None):
            raise ValueError("say sha256 or file, one of the two")
        return self


class Proxy(Part):
    """A proxy that says who somebody is: its headers count if the connection comes from its network."""

    networks: Networks = Field(min_length=1, description="where the proxy is; nobody else's headers count")
    user_header: HeaderName = Field(default="X-Forwarded-User", description="says who it is")
    role_header: HeaderName = Field(
        default="X-Forwarded-Groups", description="says his groups or roles, with commas between them"
    )
    address_header: HeaderName | None = Field(
        default="X-Forwarded-For",
        description="has his address as its last entry, for the audit log; null: the proxy writes no such header",
    )
    roles: dict[str, Role] = Field(
        default={}, description="what a group may do: `view`, `operate` or `admin`; the strongest counts"
    )


class ConsoleSettings(Part):
    """The console: its page, and the HTTP API that is documented in docs/console.md."""

    enabled: bool = Field(default=True, description="whether `penstock up` starts it beside the edges")
    host: BindAddress = Field(default="127.0.0.1", description="address to bind; :: takes IPv4 too")
    port: int = Field(default=9180, ge=0, le=65535, description="0: any free one, named in the log")
    tls: TlsSettings | None = Field(default=None, description="without: plain HTTP")
    tokens: tuple[Token, ...] = Field(
        default=(),
        description="who may come, and what he may do; without any, and without a proxy: one that it makes",
    )
    proxy: Proxy | None = Field(default=None, description="without: nobody's headers say who he is")
    origins: tuple[str, ...] = Field(
        default=(),
        description="further origins under which the console's page is reached, as https://mq.example.org: only where "
        "a proxy changes Host and browsers do not send Sec-Fetch-Site. It lets no page of another origin read answers",
    )
    refresh_s: float = Field(
        default=2.0,
        ge=0.1,
        le=60,
        description="how often the live view looks at the store while somebody watches",
    )
    max_connections: int = Field(
        default=1000, ge=1, description="connections at a time, of whomever; more are closed at once"
    )
    max_connections_per_address: int = Field(
        default=250,
        ge=0,
        description="0: no limit; IPv6 counts by /64. A proxy is one address: raise it where many come through one",
    )
    idle_timeout_s: float = Field(
        default=75.0,
        gt=0,
        le=MAX_SECONDS,
        description="a connection without a whole head of a request for so long is closed; a proxy should do so before",
    )
    max_streams: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="live views at a time; the last tenth is for the roles operate and admin",
    )
    stream_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="who takes nothing of an answer for so long is let go",
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="after this the outcome of a request is unknown"
    )
    audit_lines: int = Field(
        default=10_000,
        ge=100,
        le=1_000_000,
        description="of the audit log that the store keeps: of changes, and as many of refusals and messages put in",
    )
    store: StoreTimeouts = StoreTimeouts()

    @model_validator(mode="after")
    def _is_reachable_without_identities(self) -> Self:
        if not self.is_local or ipaddress.ip_address(self.host).is_loopback:
            return self
        raise ValueError(LOCAL_REFUSED)

    @field_validator("tokens")
    @classmethod
    def _tells_them_apart(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        for what, said in (
            ("name", [token.name for token in tokens]),
            ("digest", [token.sha256 for token in tokens if token.sha256 is not None]),
            ("file", [str(token.file) for token in tokens if token.file is not None]),
        ):
            if len(set(said)) < len(said):
                raise ValueError(f"two tokens have the same {what}: nobody could tell who it was")
        return tokens

    @property
    def is_local(self) -> bool:
        """Nothing is set up: the console serves this machine, with a token that it makes (local_token)."""
        return not self.tokens and self.proxy is None
