"""Define the store's refusals, one exception for each reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar


class StoreError(Exception):
    """A refusal by the store."""

    message: ClassVar[str] = "the store refused"  # unless the instance has its own
    reason: ClassVar[str] = "store_error"  # the stable label of counters

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.message)

    @property
    def outward(self) -> str:
        """The text that clients may read."""
        return str(self)


class StoreUnavailable(StoreError):
    """Nothing was done, and nothing will be done later: back off and tell the client."""

    message = "the store cannot be reached; nothing was stored: try again later"
    reason = "store_unavailable"

    def __init__(self, message: str = "", *, disk: str = "") -> None:
        """Take why the store cannot write to its disk, without addresses and paths, as clients may read it."""
        super().__init__(message)
        self.names_disk = bool(disk)  # True if the store cannot write to its disk
        self._outward = disk or self.message

    @property
    def outward(self) -> str:
        """The text without the instance's message, which may contain addresses and the store's own words."""
        return self._outward


class DatasetLost(StoreUnavailable):
    """The store came back with another dataset: refuse service until it is restored."""

    message = (
        "the store holds other data than before; restore it, or accept the loss: "
        "`penstock store init --accept-loss`"
    )
    reason = "dataset_lost"


class NotInitialised(StoreUnavailable):
    """The store has no dataset or no functions."""

    message = "the store is empty: set it up with `penstock store init` (or `penstock up`)"
    reason = "not_initialised"


class TooLate(StoreUnavailable):
    """The deadline passed before the store began the call."""

    message = "the deadline passed before the store could do it; nothing was stored"
    reason = "too_late"


class OutcomeUnknown(StoreError):
    """A call was sent, and its outcome cannot be determined: report neither success nor failure."""

    message = "the request was sent to the store, but its outcome is unknown"
    reason = "outcome_unknown"


class QueueUnknown(StoreError):
    """There is no such queue, or the handle is of a deleted queue."""

    message = "there is no such queue"
    reason = "queue_unknown"


class AccessDenied(StoreError):
    """The queue's `access` does not admit the client."""

    message = "the queue does not admit this client"
    reason = "access_denied"


class QueueExists(StoreError):
    """The name is taken."""

    message = "a queue of this name exists already"
    reason = "queue_exists"


class NameReserved(StoreError):
    """The name is reserved for internal queues."""

    message = "this name is reserved for Penstock's own queues: choose another one"
    reason = "reserved_name"


class QueueChanged(StoreError):
    """The queue's document is not the one that the caller saw."""

    message = "the queue's document was changed meanwhile"
    reason = "queue_changed"


class PeerChanged(StoreError):
    """The peer's document is not the one that the caller saw."""

    message = "the peer's document was changed meanwhile"
    reason = "peer_changed"


class QueueNotEmpty(StoreError):
    """The queue has messages or dead letters, and may only be deleted empty."""

    message = "the queue still holds messages or dead letters and may only be deleted empty"
    reason = "queue_not_empty"


class NumberTaken(StoreError):
    """Another queue has this number, or leads to it."""

    message = "another queue has this number, or leads to it"
    reason = "number_taken"


class BehindRefused(StoreError):
    """An earlier request of the same ordered source was refused."""

    message = "an earlier message was refused"
    reason = "behind_refused"


class QueueFull(StoreError):
    """maxLength or maxBytes is reached, and the overflow policy is reject."""

    message = "the queue is full"
    reason = "queue_full"


class MessageTooLarge(StoreError):
    """The message is larger than the peers of a transmission queue accept."""

    message = "the message is larger than the queue's peers accept"
    reason = "too_large_for_peers"


class QueuePaused(StoreError):
    """The queue is paused."""

    message = "the queue is paused"
    reason = "queue_paused"


class QueueReserved(StoreError):
    """Another sender holds the reservation."""

    message = "the queue is reserved by another sender"
    reason = "queue_reserved"


class QueueServed(QueueReserved):
    """Another process had the reservation for the same question, which is answered."""

    message = "another process served this question"
    reason = "queue_served"


class ReservationLost(StoreError):
    """The caller's reservation has expired."""

    message = "the reservation of this queue has expired"
    reason = "reservation_lost"


class StoreFull(StoreError):
    """Memory is above 75 % of maxmemory: publishes are refused, settles never."""

    message = "the store's memory is more than 75 % full: take messages out or raise maxmemory"
    reason = "store_full"


class StoreEvicts(StoreError):
    """The store may evict data when memory is short: publishes are refused."""

    message = "the store may evict messages: set maxmemory-policy to noeviction"
    reason = "store_evicts"


class LeaseLost(StoreError):
    """The caller no longer holds the lease of the message."""

    message = "the caller's lease of the message was lost"
    reason = "lease_lost"


class AckLevelRefused(StoreError):
    """The store cannot guarantee the requested ack level."""

    message = "this store cannot guarantee that ack level"
    reason = "ack_level_refused"


class AckLevelLost(StoreError):
    """The store has stopped writing to disk, so it no longer guarantees `fsync`."""

    message = (
        "the store's append-only file is off, so nothing is kept on disk: switch it on again (appendonly yes)"
    )
    reason = "ack_level_lost"


class ReasonUnknown(StoreError):
    """A filter of dead letters names a reason that does not exist."""

    message = "there is no such reason for dead letters"
    reason = "reason_unknown"


class BatchDiffers(StoreError):
    """Another batch was stored under this id."""

    message = "another batch was stored under this id: use a new id for each batch"
    reason = "batch_differs"


class BindingsChanged(StoreError):
    """The queues that subscribe to the log have changed: read them again and repeat the request."""

    message = "the queues that subscribe to the log have changed"
    reason = "bindings_changed"


class NumbersScattered(StoreError):
    """A neighbour's numbers have too many gaps to be stored."""

    message = "the numbers of a neighbour's messages have too many gaps or origins to be stored"
    reason = "numbers_scattered"


class DomainMismatch(StoreError):
    """Queues of two domains cannot be changed in one step."""

    message = "queues of different domains cannot be changed in one step"
    reason = "domain_mismatch"


class ReportUnknown(StoreError):
    """The analytics job's report has another version."""

    message = "the analytics job's report has a version that this program cannot read"
    reason = "report_unknown"


class StoreFault(StoreError):
    """The store gave an impossible answer: a bug, here or there."""

    message = "the store gave an impossible answer: this is a bug"
    reason = "store_fault"

    @property
    def outward(self) -> str:
        """The text without the instance's message, which contains the store's own words."""
        return self.message


class QueueUnreadable(StoreFault):
    """The queue's document is of a newer version, or damaged."""

    message = "the queue's document in the store cannot be read"
    reason = "queue_unreadable"

    def __init__(self, message: str = "", *, is_known: bool = True) -> None:
        """Say whether id and domain can be read, so that the queue's messages are accessible."""
        super().__init__(message)
        self.is_known = is_known  # True if the queue's messages are accessible


# The names of refusals in replies of functions (lua/publish.lua, lua/commit.lua).
REFUSALS: dict[str, type[StoreError]] = {
    "FULL": QueueFull,
    "BEHIND": BehindRefused,
    "LARGE": MessageTooLarge,
    "PAUSED": QueuePaused,
    "RESERVED": QueueReserved,
    "FENCED": LeaseLost,
    "NOTHELD": ReservationLost,
    "MEMORY": StoreFull,
    "EVICTS": StoreEvicts,
    "UNKEPT": AckLevelLost,
    "DIFFERS": BatchDiffers,
    "GONE": QueueUnknown,
    "BINDINGS": BindingsChanged,
    "SCATTERED": NumbersScattered,
}
REFUSAL_LABELS = frozenset(kind.reason for kind in REFUSALS.values())


def domain_lost(domain: str) -> DatasetLost:
    """Return the error for a domain that was ready and is empty now."""
    return DatasetLost(
        f"domain {domain!r} was set up and is empty now: restore its shard, or accept the loss with "
        "`penstock store init --accept-loss`"
    )


def refusal(name: bytes | str) -> StoreError:
    """Return the exception for the name of a refusal."""
    text = name.decode() if isinstance(name, bytes) else name
    return REFUSALS[text]() if text in REFUSALS else StoreFault(f"unknown refusal {text!r}")


def refused_as(reply: bytes) -> StoreError | None:
    """Return the exception for a reply that names a refusal, else None."""
    known = REFUSALS.get(reply.decode("utf-8", "replace"))
    return None if known is None else known()


@contextlib.contextmanager
def unknown_after_commit(*others: type[Exception]) -> Iterator[None]:
    """Raise OutcomeUnknown in place of StoreUnavailable and its subclasses, which would claim that nothing was done.

    others: further exceptions that only mean that the answer cannot be reported.
    """
    caught: tuple[type[Exception], ...] = (StoreUnavailable, *others)
    try:
        yield
    except caught as error:
        raise OutcomeUnknown(
            f"the change was made completely or in part, and then: {error}; check the result, or repeat the request"
        ) from error
