"""Settings of the client port: `edges.ring.clients` (numbers in brackets are sections of ring.md)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from services.kit.config import MAX_SECONDS
from services.store.auto_create import CreateSettings


class ClientSettings(BaseModel):
    """Limits of one connection, and the spec of queues made by create_queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    create: CreateSettings = CreateSettings()
    max_message_bytes: int = Field(
        default=1 << 20, ge=1, le=15 << 20, description="[5.2] longer messages are refused"
    )
    max_unsettled: int = Field(
        default=1_024, ge=1, le=100_000, description="[5.8] unsettled messages of one connection"
    )
    eof_grace_s: float = Field(
        default=1.0,
        ge=0,
        le=MAX_SECONDS,
        description="[5.2] a reset within this time after a FIN returns the last message to its queue",
    )
