"""What makes a publish idempotent: the identity under which the store remembers that a record was put in."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NUMBER = 1 << 53  # Lua's numbers are exact up to here
ID_BYTES = 16
NO_ID = bytes(ID_BYTES)  # what has no id is done as often as it comes


def check_id(request: bytes) -> None:
    """Raise ValueError for what is no id of a request."""
    if len(request) != ID_BYTES or request == NO_ID:
        raise ValueError(f"the id of a request has {ID_BYTES} octets, not all of them zero: {request!r}")


@dataclass(frozen=True, slots=True)
class TransactionId:
    """An identifier of the caller's own. Commits share the namespace: begin it with a word of your own.

    digest: of what is put in, '' for none. An identifier that comes again with another one is refused (BatchDiffers).
    """

    identifier: str
    keep_ms: int  # how long the store remembers it
    digest: str = ""


@dataclass(frozen=True, slots=True)
class JournalNumber:
    """The number of the record in its journal: from 1 up, with gaps where there are some.

    A number is known once one that is as high was stored, so a caller with several under way makes sure that none is
    refused before a higher one is stored. Raises ValueError for a number that Lua cannot hold.
    """

    journal: str
    number: int

    def __post_init__(self) -> None:
        """Check the number."""
        if not 1 <= self.number <= MAX_NUMBER:
            raise ValueError(f"numbers of a journal are from 1 to {MAX_NUMBER}, unlike {self.number}")


@dataclass(frozen=True, slots=True)
class DeliveryToken:
    """A token of this one record, under which the store tells what becomes of it (`deadletters.delivery_tracking`).

    The store keeps it for `keep_ms` only, unless the caller keeps asking.
    """

    token: str
    keep_ms: int


@dataclass(frozen=True, slots=True)
class RequestId:
    """The id of a ring's request (ring.md 5.4): 16 octets. Raises ValueError for others.

    A refusal is remembered, too: a repeat is answered QueueFull, QueuePaused, MessageTooLarge or QueueReserved again,
    also if the queue has changed. Not so QueueUnknown, and what is said of the whole store (StoreUnavailable,
    StoreFull, StoreEvicts, AckLevelLost): nothing is remembered then. BatchDiffers: the id is of a pull.
    """

    request: bytes
    keep_ms: int

    def __post_init__(self) -> None:
        """Check the id."""
        check_id(self.request)


Identity = TransactionId | JournalNumber | DeliveryToken | RequestId
