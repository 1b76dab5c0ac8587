"""`bindings.ring` of a queue: how it meets the messages of a ring that are no requests of queues (ring.md 5.5)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from services.store.model.document import Document, refuse_bool

INBOX, OUTBOX = "ring-inbox", "ring-outbox"  # before a group's number in the registry

Group = Annotated[int, Field(ge=1, le=0xFFFF), BeforeValidator(refuse_bool)]  # ring.md 3.3


class RingBinding(Document):
    """Which group's messages come in, or go out."""

    inbox: Group | None = Field(
        None, description="the ring group whose messages are put in; none = no group's"
    )
    outbox: Group | None = Field(None, description="the ring group that gets what is put in; none = no group")

    @model_validator(mode="after")
    def _is_one_end(self) -> Self:
        if self.inbox is not None and self.inbox == self.outbox:
            raise ValueError(
                f"inbox and outbox are both of group {self.inbox}: its messages would come back for ever"
            )
        return self

    def numbers(self) -> dict[str, int | None]:
        """What the queue is of which group; each group has one inbox and one outbox in a store."""
        return {INBOX: self.inbox, OUTBOX: self.outbox}
