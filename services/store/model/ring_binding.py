"""Validate `bindings.ring` of a queue: the ring messages that it receives or sends (ring.md 5.5)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from services.store.model.document import Document, refuse_bool

INBOX, OUTBOX = "ring-inbox", "ring-outbox"  # the kinds of claims on a group in the registry

Group = Annotated[int, Field(ge=1, le=0xFFFF), BeforeValidator(refuse_bool)]  # ring.md 3.3


class RingBinding(Document):
    """The ring groups whose messages come in or go out."""

    inbox: Group | None = Field(None, description="the ring group whose messages are put in; none = no group")
    outbox: Group | None = Field(
        None, description="the ring group that the queue's messages go to; none = no group"
    )

    @model_validator(mode="after")
    def _is_one_end(self) -> Self:
        if self.inbox is not None and self.inbox == self.outbox:
            raise ValueError(
                f"inbox and outbox are both of group {self.inbox}: messages would loop; choose two groups"
            )
        return self

    def numbers(self) -> dict[str, int | None]:
        """Return the claims on groups; each group has one inbox and one outbox in a store."""
        return {INBOX: self.inbox, OUTBOX: self.outbox}
