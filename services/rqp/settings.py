"""What may be said of the RQP edge: `edges.rqp` in the file (in brackets: sections of the protocols' documents)."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protos.rqp_mca import RQP_PORT
from services.kit.edge import EdgeSettings
from services.kit.layers import MAX_SECONDS
from services.kit.listener import ListenerSettings
from services.rqp.cast.settings import CastSettings
from services.rqp.mca.settings import McaSettings
from services.store.waits import StoreWaits


class OutboxSettings(BaseModel):
    """Transmission queues: each belongs to one process at a time. Edges that share a store say the same."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_s: float = Field(
        default=10.0, gt=0, le=MAX_SECONDS, description="a process that dies loses its queues after this long"
    )
    renew_s: float = Field(
        default=3.0, gt=0, le=5.0, description="how often it says that it lives; at most a third of `lease_s`"
    )
    look_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="how often to look for queues, should a notice be lost",
    )

    @model_validator(mode="after")
    def _outlives_a_lost_renewal(self) -> Self:
        if round(self.lease_s / self.renew_s, 3) < 3:
            raise ValueError("renew_s must be at most a third of lease_s")
        return self


class RqpSettings(EdgeSettings):
    """What holds for both protocols."""

    listeners: dict[str, ListenerSettings] = Field(
        default_factory=lambda: {"mca": ListenerSettings(port=RQP_PORT)}
    )
    mca: McaSettings = McaSettings()
    cast: CastSettings = CastSettings()
    outbox: OutboxSettings = OutboxSettings()
    store: StoreWaits = StoreWaits()
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="the store has not told an outcome by then: nothing is confirmed",
    )
    lookup_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="how long the addresses of a name are good for"
    )
