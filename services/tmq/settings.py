"""Define the settings `edges.tmq`. Numbers in brackets are sections of tmq.md."""

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
    """The meaning of TS, TE and TA on a listener."""

    ATOMIC = "atomic"  # ENQs and DNQs are committed together at TE (5.1-5.6)
    ORIGINAL = "original"  # as on the author's own server, only for DNQs (5.7)


class TmqListener(ListenerSettings):
    """Settings of one port and its dialect."""

    dialect: Dialect = Field(default=Dialect.DOCUMENT, description="[3, 4] codes and replies")
    lone_five_grace_ms: int = Field(
        default=200,
        ge=0,
        le=10_000,
        description="[3.1] silence after a lone 5 that makes it a TS; 0: never",
    )
    code5_mqid: Literal["dnq", "select"] = Field(default="dnq", description="[3.1] meaning of 5 with an MQID")
    transactions: TransactionKind | None = Field(
        default=None,
        description="[5] `atomic`: ENQs and DNQs are committed together; `original`: DNQs alone, as on the author's "
        "server. Default: `original` for the dialect `reference`, else `atomic`; `document` has only `atomic`",
    )

    @model_validator(mode="after")
    def _fits_dialect(self) -> Self:
        if self.dialect is Dialect.DOCUMENT and self.transactions is TransactionKind.ORIGINAL:
            raise ValueError("transactions: original needs dialect: reference; use atomic, or leave it out")
        return self

    @property
    def transaction_kind(self) -> TransactionKind:
        """Return the kind of transactions of this port."""
        if self.transactions is not None:
            return self.transactions
        return TransactionKind.ORIGINAL if self.dialect is Dialect.REFERENCE else TransactionKind.ATOMIC


class TransactionSettings(BaseModel):
    """[5.2, 5.4] Limits of atomic transactions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time_limit_s: float = Field(
        default=60.0, gt=0, le=MAX_SECONDS, description="after it, all requests up to TE or TA fail"
    )
    max_operations: int = Field(default=1_000, ge=1, le=1_000, description="further operations fail")
    max_bytes: int = Field(
        default=16 << 20, ge=1, le=16 << 20, description="total of bodies; what exceeds it fails"
    )


class TmqSettings(EdgeSettings):
    """Settings of the TMQ edge."""

    listeners: dict[str, TmqListener] = Field(  # type: ignore[assignment]  # a subclass
        default_factory=lambda: {
            "document": TmqListener(port=DOCUMENT_PORT),
            "reference": TmqListener(port=REFERENCE_PORT, dialect=Dialect.REFERENCE),
        }
    )
    create: CreateSettings = CreateSettings()
    transaction: TransactionSettings = TransactionSettings()
    store: StoreTimeouts = StoreTimeouts()
    max_message_bytes: int = Field(
        default=1 << 20, ge=1, le=15 << 20, description="[7.1] longer messages are refused"
    )
    max_unsettled: int = Field(
        default=1_024, ge=1, le=100_000, description="[6.1] unsettled DNQ replies of one connection"
    )
    max_open_queues: int = Field(default=1_024, ge=1, description="[2.3] open MQIDs of one connection")
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        description="[7.3] a request unfinished for this long closes the connection; [7.2] so does one whose outcome "
        "the store has not reported by then",
    )
    eof_grace_s: float = Field(
        default=1.0,
        ge=0,
        le=MAX_SECONDS,
        description="[6.1] a reset this soon after a FIN returns the last reply's message",
    )

    def limits(self, listener: TmqListener) -> Limits:
        """Return the parser's limits for a port."""
        return Limits(
            max_message_bytes=self.max_message_bytes,
            lone_five_grace_s=listener.lone_five_grace_ms / 1000,
            request_timeout_s=self.request_timeout_s,
            code5_mqid_is_select=listener.code5_mqid == "select",
        )
