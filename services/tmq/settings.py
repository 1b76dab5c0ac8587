"""What may be said of the TMQ edge: `edges.tmq` in the file (numbers in brackets are sections of tmq.md)."""

from __future__ import annotations

import enum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from protos.tmq import Dialect, Limits
from services.kit.config import MAX_SECONDS
from services.kit.edge import EdgeSettings
from services.kit.net import ListenerSettings
from services.store.auto_create import CreateSettings
from services.store.timeouts import StoreTimeouts

DOCUMENT_PORT = 6161  # [1.1]
REFERENCE_PORT = 6162


class TransactionKind(enum.Enum):
    """What TS, TE and TA mean on a listener."""

    ATOMIC = "atomic"  # ENQs and DNQs happen together at TE, or not at all (5.1-5.6)
    ORIGINAL = "original"  # as on the author's own server: only DNQs belong to the transaction (5.7)


class TmqListener(ListenerSettings):
    """One port and the dialect spoken on it."""

    dialect: Dialect = Field(
        default=Dialect.DOCUMENT, description="[3, 4] which codes and replies are spoken"
    )
    lone_five_grace_ms: int = Field(
        default=200,
        ge=0,
        le=10_000,
        description="[3.1] silence after a lone 5 that makes it a TS; 0: it never is one",
    )
    code5_mqid: Literal["dnq", "select"] = Field(default="dnq", description="[3.1] what 5 and an MQID mean")
    transactions: TransactionKind | None = Field(
        default=None,
        description="[5] ENQs and DNQs together or not at all, or DNQs alone as on the author's own server; "
        "unset: `original` where `dialect` is `reference`, else `atomic`, which is all that `document` has",
    )

    @model_validator(mode="after")
    def _fits_dialect(self) -> Self:
        if self.dialect is Dialect.DOCUMENT and self.transactions is TransactionKind.ORIGINAL:
            raise ValueError("transactions: original needs dialect: reference; say atomic, or leave it out")
        return self

    @property
    def transaction_kind(self) -> TransactionKind:
        """What TS, TE and TA mean here."""
        if self.transactions is not None:
            return self.transactions
        return TransactionKind.ORIGINAL if self.dialect is Dialect.REFERENCE else TransactionKind.ATOMIC


class TransactionSettings(BaseModel):
    """[5.2, 5.4] Bounds of atomic transactions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time_limit_s: float = Field(
        default=60.0, gt=0, le=MAX_SECONDS, description="after it everything up to TE or TA fails"
    )
    max_operations: int = Field(default=1_000, ge=1, le=1_000, description="one more fails")
    max_bytes: int = Field(
        default=16 << 20, ge=1, le=16 << 20, description="of bodies; what exceeds it fails"
    )


class TmqSettings(EdgeSettings):
    """What holds for all listeners."""

    listeners: dict[str, TmqListener] = Field(  # type: ignore[assignment]  # narrower than the kit needs to know
        default_factory=lambda: {
            "document": TmqListener(port=DOCUMENT_PORT),
            "reference": TmqListener(port=REFERENCE_PORT, dialect=Dialect.REFERENCE),
        }
    )
    create: CreateSettings = CreateSettings()
    transaction: TransactionSettings = TransactionSettings()
    store: StoreTimeouts = StoreTimeouts()
    max_message_bytes: int = Field(
        default=1 << 20, ge=1, le=15 << 20, description="[7.1] a longer one is refused"
    )
    max_unsettled: int = Field(
        default=1_024, ge=1, le=100_000, description="[6.1] DNQ replies of one connection not yet settled"
    )
    max_open_queues: int = Field(default=1_024, ge=1, description="[2.3] MQIDs open on one connection")
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        description="[7.3] a request unfinished for so long closes the connection; [7.2] so does one whose outcome "
        "the store has not told by then",
    )
    eof_grace_s: float = Field(
        default=1.0,
        ge=0,
        le=MAX_SECONDS,
        description="[6.1] a reset within this after a FIN returns the last reply",
    )

    def limits(self, listener: TmqListener) -> Limits:
        return Limits(
            max_message_bytes=self.max_message_bytes,
            lone_five_grace_s=listener.lone_five_grace_ms / 1000,
            request_timeout_s=self.request_timeout_s,
            code5_mqid_is_select=listener.code5_mqid == "select",
        )
