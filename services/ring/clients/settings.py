"""What may be said of the client port: `edges.ring.clients` (numbers in brackets are sections of ring.md)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from services.kit.config import MAX_SECONDS
from services.store.auto_create import CreateSettings


class ClientSettings(BaseModel):
    """Limits of one connection, and what create_queue makes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    create: CreateSettings = CreateSettings()
    max_message_bytes: int = Field(
        default=1 << 20, ge=1, le=15 << 20, description="[5.2] a longer one is refused"
    )
    max_unsettled: int = Field(
        default=1_024, ge=1, le=100_000, description="[5.8] messages of one connection not yet settled"
    )
    eof_grace_s: float = Field(
        default=1.0,
        ge=0,
        le=MAX_SECONDS,
        description="[5.2] a reset within this after a FIN returns the last message",
    )
