"""The Redrive document, which puts dead letters back into a queue once.

    apiVersion: penstock.dev/v1alpha1
    kind: Redrive
    metadata: {name: orders-after-the-fix}
    spec: {source: orders, filter: {reasons: [max_deliveries], olderThan: 10m}, rate: 200}

This kind exists in Kubernetes only; the command line has `penstock dead redrive`.
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
NO_REASON = (
    "a reason consists of lower-case letters, digits and underscores, as shown by `penstock dead list`"
)

ReasonName = Annotated[str, Field(pattern=f"^{REASON}$"), text_schema(REASON, 63, NO_REASON)]


class RedriveFilter(Document):
    """Select dead letters; an empty filter selects all."""

    reasons: tuple[ReasonName, ...] = Field((), max_length=50, description="reasons of death; empty: any")
    older_than: Duration = Field(0, description="minimum age as a dead letter when the redrive starts")
    origin: str = Field("", max_length=255, description="part of the origin; '': any")


class RedriveSpec(Document):
    """Redrive dead letters of one queue, optionally filtered, into the same or another queue."""

    source: QueueName = Field(description="queue with the dead letters, by its name in the store")
    target: QueueName | None = Field(
        None, description="queue of the same domain to put them into; default: source"
    )
    filter: RedriveFilter = RedriveFilter()
    rate: Annotated[int, BeforeValidator(refuse_bool)] = Field(
        100, ge=1, le=MAX_RATE, description="maximum messages per second"
    )
    dry_run: bool = Field(False, description="only count the dead letters")

    def letter_filter(self, began_ms: int) -> Filter:
        """Return the filter of a redrive that began then; letters that die later are excluded."""
        until_ms = max(1, began_ms - self.filter.older_than)  # 0 would mean no limit
        return Filter(self.filter.reasons, self.filter.origin, died_until_ms=until_ms)


class RedriveDocument(Document):
    """A complete Redrive document."""

    api_version: Literal["penstock.dev/v1alpha1"] = Field(API_VERSION, alias="apiVersion")
    kind: Literal["Redrive"] = "Redrive"
    metadata: Metadata
    spec: RedriveSpec
