"""Settings of the RQP edge: `edges.rqp` in the file (in brackets: sections of the protocols' documents)."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from protos.rqp_mca import RQP_PORT
from services.kit.config import MAX_SECONDS
from services.kit.edge import EdgeSettings
from services.kit.net import ListenerSettings
from services.rqp.cast.settings import CastSettings
from services.rqp.mca.settings import McaSettings
from services.store.timeouts import StoreTimeouts

MAX_RENEW_S = 5.0  # services/store/lua/clock.lua keeps a lease for 10 s after a step of the store's clock


class OutboxSettings(BaseModel):
    """Ownership of transmission queues, one process each. All edges of a store must have the same settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_s: float = Field(
        default=10.0,
        gt=0,
        le=MAX_SECONDS,
        description="how long a dead process keeps its queues; if only `renew_s` is set: three times that, at least 10",
    )
    renew_s: float = Field(
        default=3.0,
        gt=0,
        description="how often leases are renewed: at most 5, and at most a third of `lease_s`; if only `lease_s` is "
        "set: a third of it, at most 3",
    )
    look_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="how often to list the queues, in case a notification is lost",
    )

    @field_validator("renew_s")
    @classmethod
    def _is_often_enough(cls, renew_s: float) -> float:
        if renew_s > MAX_RENEW_S:
            raise ValueError(
                f"must be at most {MAX_RENEW_S:g}, regardless of lease_s: when the store's clock steps forward, a "
                "lease is kept for 10 s at most and must be renewed by then"
            )
        return renew_s

    @model_validator(mode="after")
    def _outlives_a_lost_renewal(self) -> Self:
        """Derive the one that is not set from the other; reject two that do not fit."""
        if "renew_s" not in self.model_fields_set:
            object.__setattr__(self, "renew_s", min(self.renew_s, self.lease_s / 3))
        elif "lease_s" not in self.model_fields_set:
            object.__setattr__(self, "lease_s", max(self.lease_s, 3 * self.renew_s))
        if round(self.lease_s / self.renew_s, 3) < 3:
            raise ValueError(
                f"renew_s ({self.renew_s:g}) must be at most a third of lease_s ({self.lease_s:g}): raise lease_s to "
                f"{3 * self.renew_s:g}, lower renew_s, or set only one of them"
            )
        return self


class RqpSettings(EdgeSettings):
    """Settings of both protocols."""

    listeners: dict[str, ListenerSettings] = Field(
        default_factory=lambda: {"mca": ListenerSettings(port=RQP_PORT)}
    )
    mca: McaSettings = McaSettings()
    cast: CastSettings = CastSettings()
    outbox: OutboxSettings = OutboxSettings()
    store: StoreTimeouts = StoreTimeouts()
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="how long to wait for the store; without an outcome by then nothing is confirmed",
    )
    lookup_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="how long the resolved addresses of a name are valid"
    )
