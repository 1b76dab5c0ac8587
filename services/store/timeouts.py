"""Define the setting `store` of every edge: timeouts and intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.store.pipeline.domain import SAMPLE_S, SAMPLES_KEPT, Timing
from services.store.pipeline.pipe import PipeSettings
from services.store.store import Store

MAX_SECONDS = 604_800.0  # a week: a longer time is assumed to be a typo


class StoreTimeouts(BaseModel):
    """Timeouts for the store, and the time after which other edges take over a dead edge's leases.

    Edges that share a store should have the same values, as each edge sweeps by its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    patience_s: float = Field(
        default=2.0,
        gt=0,
        le=MAX_SECONDS,
        description="requests to an unreachable store are refused after this time",
    )
    reply_timeout_s: float = Field(
        default=5.0,
        gt=0,
        le=MAX_SECONDS,
        description="without a reply for this long, the edge reconnects and repeats the call",
    )
    call_deadline_s: float = Field(
        default=20.0, gt=0, le=MAX_SECONDS, description="the store does not execute calls older than this"
    )
    max_pending_bytes: int = Field(
        default=64 << 20,
        ge=1 << 20,
        description="octets waiting for the store; above it, clients are not read",
    )
    session_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="an edge without heartbeat for this long is considered dead",
    )
    heartbeat_s: float = Field(
        default=10.0, gt=0, le=MAX_SECONDS, description="at most half of the session timeout"
    )
    sweep_s: float = Field(default=5.0, gt=0, le=MAX_SECONDS, description="interval of checks for dead edges")
    upkeep_s: float = Field(
        default=30.0, ge=0.01, le=MAX_SECONDS, description="interval of upkeep of each queue"
    )
    sample_s: float = Field(
        default=SAMPLE_S,
        ge=0.01,
        le=MAX_SECONDS,
        description="interval of samples of activity, written to the store",
    )
    samples_kept: int = Field(
        default=SAMPLES_KEPT,
        ge=0,
        le=100_000_000,
        description="samples kept in each domain; 0: no samples are written",
    )

    @model_validator(mode="after")
    def _outlives_a_lost_heartbeat(self) -> Self:
        if 2 * self.heartbeat_s > self.session_timeout_s:
            raise ValueError("heartbeat_s must be at most half of session_timeout_s")
        return self

    def store(
        self, url: str, edge: str, request_timeout_s: float, observe: Callable[[str, int], None]
    ) -> Store:
        """Return the store for an edge. Raises ValueError for an invalid URL.

        request_timeout_s: a request without a reply for this long has an unknown outcome.
        """
        return Store(url, edge, pipe=self.pipe(request_timeout_s), timing=self.timing(), observe=observe)

    def pipe(self, request_timeout_s: float) -> PipeSettings:
        """Return the settings of message pipes."""
        return PipeSettings(
            self.patience_s,
            self.reply_timeout_s,
            self.call_deadline_s,
            request_timeout_s,
            self.max_pending_bytes,
        )

    def timing(self) -> Timing:
        """Return the intervals of domains."""
        timeout_ms = round(self.session_timeout_s * 1000)
        return Timing(
            timeout_ms,
            self.heartbeat_s,
            self.sweep_s,
            self.upkeep_s,
            sample_s=self.sample_s,
            samples_kept=self.samples_kept,
        )
