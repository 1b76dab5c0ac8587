"""The Redrive document: dead letters that are to be messages again, once.

    apiVersion: penstock.dev/v1alpha1
    kind: Redrive
    metadata: {name: orders-after-the-fix}
    spec: {source: orders, filter: {reasons: [max_deliveries], olderThan: 10m}, rate: 200}

Only resources have this kind: a command line that is there has `penstock dead redrive`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from services.store.model import (
    API_VERSION,
    Document,
    Duration,
    Filter,
    Metadata,
    QueueName,
    refuse_bool,
    text_schema,
)

MAX_RATE = 1_000_000
REASON = "[a-z][a-z0-9_]{0,62}"
NO_REASON = "a reason is one word of small letters, digits and underscores, as `penstock dead list` shows it"

ReasonName = Annotated[str, Field(pattern=f"^{REASON}$"), text_schema(REASON, 63, NO_REASON)]


class RedriveFilter(Document):
    """Which dead letters are meant; an empty one means all."""

    reasons: tuple[ReasonName, ...] = Field(
        (), max_length=50, description="what they died of; none = anything"
    )
    older_than: Duration = Field(0, description="dead for so long when the redrive begins")
    origin: str = Field("", max_length=255, description="a part of their origin; '' = any")


class RedriveSpec(Document):
    """Which dead letters become messages again, where, and how fast."""

    source: QueueName = Field(description="the queue whose dead letters they are, by its name in the store")
    target: QueueName | None = Field(
        None, description="the queue of the same domain that gets them; none = source"
    )
    filter: RedriveFilter = RedriveFilter()
    rate: Annotated[int, BeforeValidator(refuse_bool)] = Field(
        100, ge=1, le=MAX_RATE, description="messages a second, at most"
    )
    dry_run: bool = Field(False, description="only count them")

    def wanted(self, began_ms: int) -> Filter:
        """What is meant by a redrive that began then: what dies later is not taken again and again."""
        until_ms = max(1, began_ms - self.filter.older_than)  # 0 would be whenever
        return Filter(self.filter.reasons, self.filter.origin, died_until_ms=until_ms)


class RedriveDocument(Document):
    """A whole document."""

    api_version: Literal["penstock.dev/v1alpha1"] = Field(API_VERSION, alias="apiVersion")
    kind: Literal["Redrive"] = "Redrive"
    metadata: Metadata
    spec: RedriveSpec
