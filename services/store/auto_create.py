"""Define the setting `create` of edges whose protocols let clients create queues."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.store.model.spec import DomainName, Number, QueueSpec, check_ack_level
from services.store.store import Store


class CreateSettings(BaseModel):
    """Permission for clients to create queues, and the spec of these queues (the rules of queue documents apply)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed: bool = Field(
        default=True, description="whether clients may create queues; if not, requests are refused"
    )
    domain: DomainName = Field(
        default="main", description="transaction domain of the queues: 1 to 63 letters, digits, _ . -"
    )
    ack_level: Annotated[str, AfterValidator(check_ack_level)] = Field(
        default="",
        description="memory, fsync, replicated:<n>; '': the strictest that the store can guarantee",
    )
    max_length: Number = Field(default=0, description="messages; 0: no bound")
    max_bytes: Number = Field(default=0, description="octets; 0: no bound")

    async def create(self, store: Store, name: str, owner: str) -> bool:
        """Create a queue; return False if that is not allowed or the queue exists. Raises StoreError."""
        if not self.allowed:
            return False
        spec = QueueSpec(
            domain=self.domain,
            ack_level=self.ack_level,
            max_length=self.max_length,
            max_bytes=self.max_bytes,
        )
        _, new = await store.catalogue.declare(name, spec, owner)
        return new
