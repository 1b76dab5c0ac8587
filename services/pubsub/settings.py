"""Settings of the text pub/sub edge: `edges.pubsub` in the file (in brackets: sections of pubsub.md)."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from protos.pubsub import Charset, Limits, LinkLimits
from services.kit.config import MAX_SECONDS
from services.kit.edge import EdgeSettings
from services.kit.net import DialSettings, ListenerSettings
from services.store.log import LogSpec
from services.store.model import check_ack_level
from services.store.timeouts import StoreTimeouts

CLIENT_PORT = 7171  # [1.1]
LINK_PORT = 7172  # [4.3]
LARGEST_ENTRY_S = 600.0  # timeout of one line of a link: 64 MiB over a slow network


class TextListener(ListenerSettings):
    """A port for clients or for neighbours."""

    serves: Literal["clients", "links"] = Field(
        default="clients", description="[1, 4.3] which peers connect here"
    )
    charset: Charset = Field(
        default=Charset.ASCII, description="[2.1] ascii refuses bytes from 128 on, utf-8 accepts UTF-8"
    )
    strict: bool = Field(default=False, description="[2.2] refuse UNSUBSCRIBE, PING and QUIT")
    write_timeout_s: float = Field(
        default=86_400.0,
        gt=0,
        le=MAX_SECONDS,
        description="[3.6] close a client that reads nothing for this long; its output is bounded meanwhile",
    )


def _address(text: str) -> str:
    parse_address(text)
    return text


def parse_address(text: str) -> tuple[str, int]:
    """Parse `host:port` or `[::1]:port`. Raises ValueError."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:\s\[\]@/]+)):(\d{1,5})", text)
    if not found or not 1 <= int(found[3]) <= 65_535:
        raise ValueError("must be host:port, as in 10.0.0.7:7172 or [::1]:7172")
    return found[1] or found[2], int(found[3])


Address = Annotated[str, AfterValidator(_address)]


class LogSettings(BaseModel):
    """Durability and retention of the log. All edges of a store must have the same settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ack_level: Annotated[str, AfterValidator(check_ack_level)] = Field(
        default="",
        description="[3.1] memory, fsync or replicated:<n>; '': the strictest that the store can guarantee",
    )
    retention_s: float = Field(
        default=86_400.0, gt=0, le=366 * 86_400.0, description="[4.6] messages older than this are trimmed"
    )
    max_bytes: int = Field(
        default=1 << 30,
        ge=1 << 16,
        description="[4.6] of the store's memory, including the overhead of entries; beyond it the oldest messages are "
        "trimmed; never more than a quarter of the store's maxmemory",
    )
    trim_s: float = Field(default=1.0, ge=0.01, le=MAX_SECONDS, description="how often the log is trimmed")

    def spec(self, strictest: str) -> LogSpec:
        """Return the log's specification. strictest: the ack level if none is set."""
        return LogSpec(self.ack_level or strictest, round(self.retention_s * 1000), self.max_bytes)


class LinkSettings(BaseModel):
    """Links to other stores, in both directions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    beat_s: float = Field(
        default=5.0, gt=0, le=MAX_SECONDS, description="[4.5] interval of heartbeats (BEAT)"
    )
    silence_s: float = Field(
        default=15.0,
        gt=0,
        le=MAX_SECONDS,
        description="[4.5] close a link that is silent for this long; must be more than twice beat_s",
    )
    reconnect_s: float = Field(
        default=5.0, gt=0, le=MAX_SECONDS, description="longest pause before a neighbour is dialled again"
    )
    lease_s: float = Field(
        default=6.0,
        gt=0,
        le=MAX_SECONDS,
        description="lease of the one edge of a store that follows a neighbour; after it another edge takes over",
    )
    max_line_bytes: int = Field(
        default=(64 << 20) + (4 << 10), ge=68 << 10, description="[4.5] size of the largest entry plus 4 KiB"
    )
    dial: DialSettings = DialSettings()

    @model_validator(mode="after")
    def _outlives_a_late_beat(self) -> Self:
        if self.silence_s <= 2 * self.beat_s:
            raise ValueError(
                "silence_s must be greater than twice beat_s: else one late heartbeat ends a healthy link"
            )
        return self

    def limits(self) -> LinkLimits:
        """Return the limits of the parser."""
        return LinkLimits(self.max_line_bytes, LARGEST_ENTRY_S, self.silence_s)


class PubsubSettings(EdgeSettings):
    """Settings of the text pub/sub edge."""

    listeners: dict[str, TextListener] = Field(  # type: ignore[assignment]  # narrower than the kit needs to know
        default_factory=lambda: {
            "text": TextListener(port=CLIENT_PORT),
            "link": TextListener(port=LINK_PORT, serves="links"),
        }
    )
    neighbours: tuple[Address, ...] = Field(
        default=(), description="[4.1, 4.3] host:port of servers on other stores to link with"
    )
    max_line_bytes: int = Field(
        default=64 << 10, ge=64, le=15 << 20, description="[1.2] largest line; a longer one is refused"
    )
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="[1.4] how long a line may be unfinished before the connection is closed",
    )
    max_subscriptions: int = Field(
        default=100_000, ge=1, description="most subscriptions of one connection; one more is refused"
    )
    max_subscriptions_in_all: int = Field(
        default=2_000_000,
        ge=1,
        description="most subscriptions of all connections and workers; one more is refused",
    )
    subscriber_bytes: int = Field(
        default=8 << 20,
        ge=64 << 10,
        description="[3.6] most output that waits for one subscriber; beyond it the subscriber is served from the log",
    )
    subscribers_bytes: int = Field(
        default=128 << 20,
        ge=1 << 20,
        description="[3.6] the same for all subscribers and workers; beyond it 64 KiB each, or a sixteenth of a longer "
        "line",
    )
    store: StoreTimeouts = StoreTimeouts()
    log: LogSettings = LogSettings()
    link: LinkSettings = LinkSettings()

    @model_validator(mode="after")
    def _links_carry_what_clients_send(self) -> Self:
        if self.link.max_line_bytes < self.max_line_bytes + (4 << 10):
            raise ValueError("link.max_line_bytes must be at least max_line_bytes plus 4 KiB")
        return self

    def limits(self, listener: TextListener) -> Limits:
        """Return the limits of a listener's parsers."""
        return Limits(self.max_line_bytes, listener.charset, listener.strict, self.request_timeout_s)
