"""Define idempotency keys: the identities under which the store remembers that a record was put in."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NUMBER = 1 << 53  # Lua's numbers are exact up to here
ID_BYTES = 16
NO_ID = bytes(ID_BYTES)  # without an id, a repeated request is executed again


def check_id(request: bytes) -> None:
    """Raise ValueError for an invalid request id."""
    if len(request) != ID_BYTES or request == NO_ID:
        raise ValueError(f"a request id has {ID_BYTES} octets that are not all zero, not {request!r}")


@dataclass(frozen=True, slots=True)
class TransactionId:
    """An identifier chosen by the caller. Commits share the namespace, so use a prefix of your own.

    digest: of the records, '' for none. Reusing an identifier with another digest is refused (BatchDiffers).
    """

    identifier: str
    keep_ms: int  # how long the store remembers the identifier
    digest: str = ""


@dataclass(frozen=True, slots=True)
class JournalNumber:
    """The number of a record in its journal: from 1 up, possibly with gaps.

    Storing a number also marks all lower numbers as stored, so a caller with several requests in flight must not let
    a lower one be refused after a higher one is stored. Raises ValueError for a number that Lua cannot represent.
    """

    journal: str
    number: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= MAX_NUMBER:
            raise ValueError(f"journal numbers are from 1 to {MAX_NUMBER}, not {self.number}")


@dataclass(frozen=True, slots=True)
class DeliveryToken:
    """A token under which the store records what becomes of one message (`deadletters.delivery_tracking`).

    The store keeps it for `keep_ms`; each poll extends that.
    """

    token: str
    keep_ms: int


@dataclass(frozen=True, slots=True)
class RequestId:
    """The id of a ring request (ring.md 5.4): 16 octets. Raises ValueError for others.

    Refusals are remembered, too: a repeat gets the same QueueFull, QueuePaused, MessageTooLarge or QueueReserved even
    if the queue has changed. QueueUnknown and refusals by the whole store (StoreUnavailable, StoreFull, StoreEvicts,
    AckLevelLost) are not remembered. BatchDiffers: the id belongs to a pull.
    """

    request: bytes
    keep_ms: int

    def __post_init__(self) -> None:
        check_id(self.request)


Identity = TransactionId | JournalNumber | DeliveryToken | RequestId
