"""Convert the store's statistics of queues to named counters and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from services.store.model.errors import StoreError, StoreFault

COUNTERS = (
    "added",
    "delivered",
    "acked",
    "returned",
    "fenced",
    "dead",
    "expired",
    "duplicates",
    "redriven",
    "purged",
    "dead_trimmed",  # by age or number
    "dead_overflowed",  # by number alone, which may be unintended
    "emptied",  # ready messages that were purged
    "send_errors",
    "bytes_in",
    "bytes_out",
)
NUMBERS = ("len", "leased", "bytes", "until", "own_until", *COUNTERS)
FIELDS = (*NUMBERS, "holder", "own", "condition")  # of the queue's hash


@dataclass(frozen=True, slots=True)
class BulkStatsResult:
    """The statistics of many queues, by name."""

    stats: dict[str, dict[str, Any]] = field(default_factory=dict)  # as `figures`
    # damaged queues, and those of an unreachable shard
    errors: dict[str, StoreError] = field(default_factory=dict)


def figures(reply: list[Any]) -> dict[str, Any]:
    """Parse the reply of `ps1_stats` into exact counters and sizes: integers, times in ms."""
    pairs, *sizes, now = reply
    found = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return _figures([found.get(field.encode()) for field in FIELDS], sizes, int(now))


def figures_of(reply: list[Any]) -> list[dict[str, Any] | StoreFault | None]:
    """Parse the reply of `ps1_stats_of`, one result for each queue; None: deleted, StoreFault: damaged."""
    now = int(reply[0])
    return [_figures_of_one(one, now) for one in reply[1:]]


def _figures_of_one(reply: Any, now: int) -> dict[str, Any] | StoreFault | None:
    if reply is None:
        return None
    if isinstance(reply, bytes):
        return StoreFault(f"it is damaged in the store: {reply.decode('utf-8', 'replace')}")
    try:
        return _figures(reply[0], reply[1:], now)
    except ValueError as error:  # a counter is not a number
        return StoreFault(f"it is damaged in the store: {error}")


def _figures(values: Sequence[bytes | None], sizes: Sequence[Any], now: int) -> dict[str, Any]:
    """Build the statistics. values: of FIELDS. sizes: dead letters, returned messages, leases, oldest put (ms)."""
    length, leased, octets, until, own_until, *counters = [
        int(value or 0) for value in values[: len(NUMBERS)]
    ]
    holder, own, condition = [(value or b"").decode("utf-8", "replace") for value in values[len(NUMBERS) :]]
    dead, returned, leases, oldest = sizes
    reserved_ms = max(0, until - now)
    return {
        "ready": length - leased,
        "in_flight": leased,
        "bytes": octets,
        "returned_waiting": returned,
        "leases": leases,
        "dead_letters": dead,
        "oldest_age_ms": max(0, now - int(oldest)) if length else 0,
        "reserved_by": holder if reserved_ms > 0 else "",
        "reserved_for_ms": reserved_ms,
        "owned_by": own if own_until > now else "",
        "condition": condition,
        **dict(zip(COUNTERS, counters, strict=True)),
    }
