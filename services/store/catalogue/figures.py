"""What the store tells of one queue, as the numbers that people and programs look at."""

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
    "dead_trimmed",  # for age or number
    "dead_overflowed",  # of them, for number: nobody need have asked for that
    "emptied",  # messages that were ready, and that somebody removed
    "send_errors",
    "bytes_in",
    "bytes_out",
)
NUMBERS = ("len", "leased", "bytes", "until", "own_until", *COUNTERS)
FIELDS = (*NUMBERS, "holder", "own", "condition")  # of the queue's hash


@dataclass(frozen=True, slots=True)
class BulkStatsResult:
    """A look at many queues, by name."""

    stats: dict[str, dict[str, Any]] = field(default_factory=dict)  # as `figures`
    errors: dict[str, StoreError] = field(default_factory=dict)  # they are damaged, or their shard is away


def figures(reply: list[Any]) -> dict[str, Any]:
    """Exact counters and sizes from the reply of `ps1_stats`: integers, times in ms."""
    pairs, *sizes, now = reply
    found = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return _figures([found.get(field.encode()) for field in FIELDS], sizes, int(now))


def figures_of(reply: list[Any]) -> list[dict[str, Any] | StoreFault | None]:
    """The same of each queue from the reply of `ps1_stats_of`; None: it is gone; a fault: it is damaged."""
    now = int(reply[0])
    return [_figures_of_one(told, now) for told in reply[1:]]


def _figures_of_one(told: Any, now: int) -> dict[str, Any] | StoreFault | None:
    if told is None:
        return None
    if isinstance(told, bytes):
        return StoreFault(f"it is damaged in the store: {told.decode('utf-8', 'replace')}")
    try:
        return _figures(told[0], told[1:], now)
    except ValueError as error:  # its counters are no numbers
        return StoreFault(f"it is damaged in the store: {error}")


def _figures(values: Sequence[bytes | None], sizes: Sequence[Any], now: int) -> dict[str, Any]:
    """values: of FIELDS. sizes: dead letters, returned messages, leases, when the oldest was put in."""
    length, leased, octets, until, own_until, *counters = [
        int(value or 0) for value in values[: len(NUMBERS)]
    ]
    holder, own, condition = [(value or b"").decode("utf-8", "replace") for value in values[len(NUMBERS) :]]
    dead, returned, lots, oldest = sizes
    reserved_ms = max(0, until - now)
    return {
        "ready": length - leased,
        "in_flight": leased,
        "bytes": octets,
        "returned_waiting": returned,
        "leases": lots,
        "dead_letters": dead,
        "oldest_age_ms": max(0, now - int(oldest)) if length else 0,
        "reserved_by": holder if reserved_ms > 0 else "",
        "reserved_for_ms": reserved_ms,
        "owned_by": own if own_until > now else "",
        "condition": condition,
        **dict(zip(COUNTERS, counters, strict=True)),
    }
