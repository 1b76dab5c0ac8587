"""How long an edge waits for the store: the settings that every edge has under `store`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.store.pipeline.domain import SAMPLE_S, SAMPLES_KEPT, Timing
from services.store.pipeline.pipe import PipeSettings
from services.store.store import Store

MAX_SECONDS = 604_800.0  # a week: a longer time in the settings is a slip of the pen


class StoreTimeouts(BaseModel):
    """How long the edge waits for the store, and how soon a silent edge is given up by the others.

    Edges that share a store say the same: each of them sweeps by its own numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    patience_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="without a store, requests are refused after this long"
    )
    reply_timeout_s: float = Field(
        default=5.0,
        gt=0,
        le=MAX_SECONDS,
        description="no answer for so long: a new connection, and the call again",
    )
    call_deadline_s: float = Field(
        default=20.0, gt=0, le=MAX_SECONDS, description="the store does not begin a call that is older"
    )
    max_pending_bytes: int = Field(
        default=64 << 20, ge=1 << 20, description="waiting for the store in all; above it nobody is read"
    )
    session_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="silence after which an edge is dead"
    )
    heartbeat_s: float = Field(
        default=10.0, gt=0, le=MAX_SECONDS, description="at most half of the session timeout"
    )
    sweep_s: float = Field(default=5.0, gt=0, le=MAX_SECONDS, description="how often to look for dead edges")
    upkeep_s: float = Field(
        default=30.0, ge=0.01, le=MAX_SECONDS, description="how often to tidy and count each queue"
    )
    sample_s: float = Field(
        default=SAMPLE_S, ge=0.01, le=MAX_SECONDS, description="how often to tell the store what was done"
    )
    samples_kept: int = Field(
        default=SAMPLES_KEPT,
        ge=0,
        le=100_000_000,
        description="what edges and upkeep tell, in each domain; 0: nothing is told",
    )

    @model_validator(mode="after")
    def _outlives_a_lost_heartbeat(self) -> Self:
        if 2 * self.heartbeat_s > self.session_timeout_s:
            raise ValueError("heartbeat_s must be at most half of session_timeout_s")
        return self

    def store(
        self, url: str, edge: str, request_timeout_s: float, observe: Callable[[str, int], None]
    ) -> Store:
        """The store as an edge uses it; after `request_timeout_s` an outcome is unknown. Raises ValueError: bad URL."""
        return Store(url, edge, pipe=self.pipe(request_timeout_s), timing=self.timing(), observe=observe)

    def pipe(self, request_timeout_s: float) -> PipeSettings:
        return PipeSettings(
            self.patience_s,
            self.reply_timeout_s,
            self.call_deadline_s,
            request_timeout_s,
            self.max_pending_bytes,
        )

    def timing(self) -> Timing:
        timeout_ms = round(self.session_timeout_s * 1000)
        return Timing(
            timeout_ms,
            self.heartbeat_s,
            self.sweep_s,
            self.upkeep_s,
            sample_s=self.sample_s,
            samples_kept=self.samples_kept,
        )
