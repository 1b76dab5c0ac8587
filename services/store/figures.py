"""What the store tells of one queue, as the numbers that people and programs look at."""

from __future__ import annotations

from typing import Any

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
    "dead_trimmed",
    "send_errors",
    "bytes_in",
    "bytes_out",
)


def figures(reply: list[Any]) -> dict[str, Any]:
    """Exact counters and sizes from the reply of `ps1_stats`: integers, times in ms."""
    pairs, dead, returned, lots, oldest, now = reply
    found = {pairs[i].decode(): pairs[i + 1].decode("utf-8", "replace") for i in range(0, len(pairs), 2)}
    counters = {name: int(found.get(name, 0)) for name in COUNTERS}
    reserved_ms = max(0, int(found.get("until", 0)) - int(now))
    length, leased = int(found.get("len", 0)), int(found.get("leased", 0))
    return {
        "ready": length - leased,
        "in_flight": leased,
        "bytes": int(found.get("bytes", 0)),
        "returned_waiting": returned,
        "leases": lots,
        "dead_letters": dead,
        "oldest_age_ms": int(now) - int(oldest) if length else 0,
        "reserved_by": found.get("holder", "") if reserved_ms > 0 else "",
        "reserved_for_ms": reserved_ms,
        "owned_by": found.get("own", "") if int(found.get("own_until", 0)) > int(now) else "",
        "condition": found.get("condition", ""),
        **counters,
    }
