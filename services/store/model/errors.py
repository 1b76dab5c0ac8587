"""What the store refuses, one exception a reason.

StoreError
├── StoreUnavailable      nothing was done, and nothing will be done later; back off and tell the client
│   ├── DatasetLost       the store came back as other data: refuse service until it is restored
│   ├── NotInitialised    no dataset or no functions there yet
│   └── TooLate           the deadline had passed before the store looked at the call
├── OutcomeUnknown        it was sent, and what became of it cannot be learnt: never answer OK, never "failed"
├── QueueUnknown          no such queue, or the handle is of a queue deleted meanwhile
├── AccessDenied          the queue's `access` does not let this client
├── QueueExists
├── QueueChanged          its document is another one than the caller saw
├── PeerChanged           the same of a peer
├── QueueNotEmpty
├── NameReserved          the name is for queues of Penstock itself
├── NumberTaken           another queue has this number, or leads to it
├── BehindRefused         the same source wanted something before it in order, which was refused
├── QueueFull             max_length or max_bytes reached, overflow policy reject
├── MessageTooLarge       larger than the peers of a transmission queue take
├── QueuePaused
├── QueueReserved         somebody else holds the reservation
│   └── QueueServed       somebody else had it for the same question, which is answered
├── ReservationLost       the reservation that the caller had is gone
├── StoreFull             above 75 % of maxmemory: publishes are refused, settles never
├── StoreEvicts           the store may throw messages away when memory is short: publishes are refused
├── LeaseLost             the message is not leased to the caller any more
├── AckLevelRefused       this store cannot keep the ack level that was asked for
├── AckLevelLost          the store keeps nothing on disk any more, so `fsync` is not promised any longer
├── ReasonUnknown         nothing dies of what a filter of dead letters names
├── BatchDiffers          another batch was stored under this id
├── BindingsChanged       queues that subscribe to the log have come or gone: look again and ask anew
├── NumbersScattered      a neighbour's numbers come in too many pieces to be kept
├── DomainMismatch        queues of two domains cannot be changed together
├── ReportUnknown         the analytics job's report is of another version
└── StoreFault            the store answered what it never should: a bug, ours or its
    └── QueueUnreadable   the queue's document is of a newer version, or spoilt

The docstring is the default message, `outward` what strangers may read of it; `reason` is the stable label of the
counter.
"""

from __future__ import annotations

from typing import ClassVar


class StoreError(Exception):
    """the store refused"""

    reason: ClassVar[str] = "store_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.__doc__)

    @property
    def outward(self) -> str:
        """What strangers may read."""
        return str(self)


class StoreUnavailable(StoreError):
    """the store cannot be reached; nothing was stored: try again later"""

    reason = "store_unavailable"

    def __init__(self, message: str = "", *, disk: str = "") -> None:
        """disk: why the store cannot write to its disk, without addresses and paths: strangers may read it."""
        super().__init__(message)
        self.names_disk = bool(disk)
        self._outward = disk or str(self.__doc__)

    @property
    def outward(self) -> str:
        """Nothing of the message, which may say where the store is, and what it said itself."""
        return self._outward


class DatasetLost(StoreUnavailable):
    """the store holds other data than before; restore it, or accept the loss: `penstock store init --accept-loss`"""

    reason = "dataset_lost"


class NotInitialised(StoreUnavailable):
    """the store is empty: set it up with `penstock store init` (or `penstock up`)"""

    reason = "not_initialised"


class TooLate(StoreUnavailable):
    """the deadline passed before the store could do it; nothing was stored"""

    reason = "too_late"


class OutcomeUnknown(StoreError):
    """the store was asked, but its answer cannot be learnt"""

    reason = "outcome_unknown"


class QueueUnknown(StoreError):
    """there is no such queue"""

    reason = "queue_unknown"


class AccessDenied(StoreError):
    """the queue is not for this client"""

    reason = "access_denied"


class QueueExists(StoreError):
    """a queue of this name exists already"""

    reason = "queue_exists"


class NameReserved(StoreError):
    """this name is reserved for Penstock's own queues: choose another one"""

    reason = "reserved_name"


class QueueChanged(StoreError):
    """the queue's document was changed meanwhile"""

    reason = "queue_changed"


class PeerChanged(StoreError):
    """the peer's document was changed meanwhile"""

    reason = "peer_changed"


class QueueNotEmpty(StoreError):
    """the queue still holds messages or dead letters and may only be deleted empty"""

    reason = "queue_not_empty"


class NumberTaken(StoreError):
    """another queue has this number, or leads to it"""

    reason = "number_taken"


class BehindRefused(StoreError):
    """what came before it was refused"""

    reason = "behind_refused"


class QueueFull(StoreError):
    """the queue is full"""

    reason = "queue_full"


class MessageTooLarge(StoreError):
    """the message is larger than the queue's peers take"""

    reason = "too_large_for_peers"


class QueuePaused(StoreError):
    """the queue is paused"""

    reason = "queue_paused"


class QueueReserved(StoreError):
    """the queue is reserved by another sender"""

    reason = "queue_reserved"


class QueueServed(QueueReserved):
    """another process has had the queue for this question"""

    reason = "queue_served"


class ReservationLost(StoreError):
    """the reservation of this queue has run out"""

    reason = "reservation_lost"


class StoreFull(StoreError):
    """the store's memory is more than 75 % full: take messages out or raise maxmemory"""

    reason = "store_full"


class StoreEvicts(StoreError):
    """the store may evict messages: set maxmemory-policy to noeviction"""

    reason = "store_evicts"


class LeaseLost(StoreError):
    """the message is not leased to the caller any more"""

    reason = "lease_lost"


class AckLevelRefused(StoreError):
    """this store cannot keep that ack level"""

    reason = "ack_level_refused"


class AckLevelLost(StoreError):
    """the store's append-only file has been switched off: it keeps nothing any more, so nothing is promised"""

    reason = "ack_level_lost"


class ReasonUnknown(StoreError):
    """nothing dies of this reason"""

    reason = "reason_unknown"


class BatchDiffers(StoreError):
    """another batch was stored under this id: each batch needs an id of its own"""

    reason = "batch_differs"


class BindingsChanged(StoreError):
    """the queues that subscribe to the log are others than the caller knows"""

    reason = "bindings_changed"


class NumbersScattered(StoreError):
    """the numbers of a neighbour's messages are scattered: too many pieces, or too many origins, to be kept"""

    reason = "numbers_scattered"


class DomainMismatch(StoreError):
    """queues of different domains cannot be changed in one step"""

    reason = "domain_mismatch"


class ReportUnknown(StoreError):
    """the analytics job's report is of a version that this program does not know"""

    reason = "report_unknown"


class StoreFault(StoreError):
    """the store answered what it never should"""

    reason = "store_fault"

    @property
    def outward(self) -> str:
        """Nothing of the message, which has the store's own words."""
        return str(self.__doc__)


class QueueUnreadable(StoreFault):
    """the queue's document in the store cannot be read"""

    reason = "queue_unreadable"

    def __init__(self, message: str = "", *, is_known: bool = True) -> None:
        """is_known: its id and domain can be read, so whatever is in the queue can be reached."""
        super().__init__(message)
        self.is_known = is_known


# How the functions name their refusals (lua/publish.lua, lua/commit.lua).
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
    """Of a domain that was ready."""
    return DatasetLost(
        f"domain {domain!r} was set up and is empty now: restore its shard, or accept the loss with "
        "`penstock store init --accept-loss`"
    )


def refusal(name: bytes | str) -> StoreError:
    """The exception for a refusal that a function named."""
    text = name.decode() if isinstance(name, bytes) else name
    return REFUSALS[text]() if text in REFUSALS else StoreFault(f"unknown refusal {text!r}")


def refused_as(reply: bytes) -> StoreError | None:
    """The exception for a reply that is the name of a refusal, else None."""
    known = REFUSALS.get(reply.decode("utf-8", "replace"))
    return None if known is None else known()
