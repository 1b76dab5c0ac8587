"""What may be said of the TMQ edge: `edges.tmq` in the file (numbers in brackets are sections of tmq.md)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from protos.tmq import Dialect, Limits
from services.kit.edge import EdgeSettings
from services.kit.listener import ListenerSettings

DOCUMENT_PORT = 6161  # [1.1]
REFERENCE_PORT = 6162


class TmqListener(ListenerSettings):
    """One port and the dialect spoken on it."""

    dialect: Dialect = Dialect.DOCUMENT
    lone_five_grace_ms: int = Field(
        default=200, ge=0, le=10_000, description="[3.1] 0: a lone 5 is never a TS"
    )
    code5_mqid: Literal["dnq", "select"] = Field(default="dnq", description="[3.1] what 5 and an MQID mean")


class CreateSettings(BaseModel):
    """What CREATE makes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed: bool = Field(default=True, description="false: CREATE answers error")
    domain: str = Field(default="main", min_length=1)
    ack_level: str = Field(default="", description="'': the strongest that the store can keep")
    max_length: int = Field(default=0, ge=0, description="messages; 0: no bound")
    max_bytes: int = Field(default=0, ge=0, description="octets; 0: no bound")


class TransactionSettings(BaseModel):
    """[5.2, 5.4]"""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time_limit_s: float = Field(default=60.0, gt=0)
    max_operations: int = Field(default=1_000, ge=1, le=1_000)
    max_bytes: int = Field(default=16 << 20, ge=1, le=16 << 20)


class TmqSettings(EdgeSettings):
    listeners: dict[str, TmqListener] = Field(  # type: ignore[assignment]  # narrower than the kit needs to know
        default_factory=lambda: {
            "document": TmqListener(port=DOCUMENT_PORT),
            "reference": TmqListener(port=REFERENCE_PORT, dialect=Dialect.REFERENCE),
        }
    )
    create: CreateSettings = CreateSettings()
    transaction: TransactionSettings = TransactionSettings()
    max_message_bytes: int = Field(default=1 << 20, ge=1, le=15 << 20, description="[7.1]")
    max_unsettled: int = Field(default=1_024, ge=1, le=100_000, description="[6.1] replies not yet settled")
    max_open_queues: int = Field(default=1_024, ge=1, description="MQIDs open on one connection")
    request_timeout_s: float = Field(default=30.0, gt=0, description="[7.2, 7.3]")
    eof_grace_s: float = Field(default=1.0, ge=0, description="[6.1] how long a reset may follow a FIN")

    def limits(self, listener: TmqListener) -> Limits:
        return Limits(
            max_message_bytes=self.max_message_bytes,
            lone_five_grace_s=listener.lone_five_grace_ms / 1000,
            request_timeout_s=self.request_timeout_s,
            code5_mqid_is_select=listener.code5_mqid == "select",
        )
