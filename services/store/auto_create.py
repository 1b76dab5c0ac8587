"""Queues that clients make for themselves: what the settings say under `create` of an edge whose protocol has that."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from services.store.model.spec import DomainName, Number, QueueSpec, check_ack_level
from services.store.store import Store


class CreateSettings(BaseModel):
    """What a client's new queue is like: the same rules as for queue documents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allowed: bool = Field(default=True, description="false: clients make no queues, the request is refused")
    domain: DomainName = Field(default="main", description="of the queues: 1 to 63 letters, digits, _ . -")
    ack_level: Annotated[str, AfterValidator(check_ack_level)] = Field(
        default="", description="memory, fsync, replicated:<n>; '': the strongest that the store can keep"
    )
    max_length: Number = Field(default=0, description="messages; 0: no bound")
    max_bytes: Number = Field(default=0, description="octets; 0: no bound")

    async def create(self, store: Store, name: str, owner: str) -> bool:
        """True if it was made now, False if that is not allowed. Raises StoreError: exists, refused."""
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
