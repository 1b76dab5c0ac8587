"""Build a queue's row of the API from its document and figures, and compare it with the previous poll."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from services.console.contract.shape import encode
from services.store import Queue
from services.store.catalogue import COUNTERS
from services.store.model import StoreError, to_document

Figures = Mapping[str, Any]  # of `Store.stats`

RATES = {"in": "added", "out": "delivered", "acked": "acked", "returned": "returned", "died": "dead"}
OCTET_RATES = {"inOctets": "bytes_in", "outOctets": "bytes_out"}
AGE_GROWTH = 1.1  # an age that grew by less is not a change
IDLE_S = 60.0  # without a delivery, and with a message older than this, a queue has no consumers
Rates = dict[str, float | None]


@dataclass(slots=True, eq=False)
class Row:
    """A queue in one poll."""

    queue: Queue
    base: Figures  # from which the next rates are computed
    rates: Rates
    summary: dict[str, Any]
    version: int  # of the snapshot in which it last changed
    sent_age_ms: int = 0  # of the oldest message, as of that version
    delivered_at: float = 0.0  # monotonic time of the last delivery seen
    json: bytes | None = None
    is_read: bool = True  # False: `base` is older, or empty

    def encoded(self) -> bytes:
        """Return the summary as JSON, computed once."""
        if self.json is None:
            self.json = encode(self.summary)
        return self.json


def rates_of(names: Mapping[str, str], now: Figures, before: Figures | None, seconds: float) -> Rates:
    """Return rates per second since the previous figures; all None without them."""
    if before is None or seconds <= 0:
        return dict.fromkeys(names)
    return {rate: round(max(now[name] - before[name], 0) / seconds, 2) for rate, name in names.items()}


def last_delivery(figures: Figures, old: Row | None, now: float) -> float:
    """Return the monotonic time of the last delivery.

    It is `now` at the first poll, unless the queue never had a delivery, and while no message is ready, as the oldest
    message may be one in flight.
    """
    if old is not None and old.base["ready"] and old.base["delivered"] == figures["delivered"]:
        return old.delivered_at
    return now if old is not None or figures["delivered"] else float("-inf")


NO_FIGURES: Figures = {
    **dict.fromkeys(
        ("ready", "in_flight", "dead_letters", "bytes", "oldest_age_ms", "reserved_for_ms", *COUNTERS), 0
    ),
    **dict.fromkeys(("reserved_by", "owned_by", "condition"), ""),
}


def unread_row(queue: Queue, old: Row | None, error: StoreError, version: int, unreadable: str = "") -> Row:
    """Return the row of a queue that is damaged, or whose shard is down: the last known figures, and the error."""
    if old is not None and old.queue.qid != queue.qid:
        old = None
    base = old.base if old is not None else NO_FIGURES
    rates: Rates = dict.fromkeys(RATES)
    summary = {
        **summary_of(queue, base, rates, unreadable, idle_s=0.0),
        "condition": f"the queue's state cannot be read: {error}",
    }
    if old is not None and not has_changed(summary, old):
        version = old.version
    return Row(
        queue,
        base,
        rates,
        summary,
        version,
        summary["oldestAgeMs"],
        old.delivered_at if old is not None else time.monotonic(),
        is_read=False,  # the next rates start again
    )


def summary_of(
    queue: Queue, figures: Figures, rates: Rates, unreadable: str = "", *, idle_s: float
) -> dict[str, Any]:
    """Return the queue's summary. idle_s: time since the last delivery."""
    spec = queue.spec
    is_waiting = figures["ready"] > 0 and figures["oldest_age_ms"] > IDLE_S * 1000
    return {
        "name": queue.name,
        "domain": queue.domain,
        "owner": queue.owner,
        "paused": spec.paused,
        "remote": spec.remote.protocol.value if spec.remote is not None else None,
        "ready": figures["ready"],
        "inFlight": figures["in_flight"],
        "dead": figures["dead_letters"],
        "bytes": figures["bytes"],
        "oldestAgeMs": figures["oldest_age_ms"],
        "nobodyTakes": is_waiting and not spec.paused and idle_s > IDLE_S,
        "rates": rates,
        "ackLevel": spec.ack_level,
        "condition": unreadable or figures["condition"],
        "unreadable": unreadable or None,
    }


def has_changed(new: dict[str, Any], old: Row) -> bool:
    """Return whether a summary differs from a row, apart from an age that grew by less than a tenth."""
    if {**new, "oldestAgeMs": 0} != {**old.summary, "oldestAgeMs": 0}:
        return True
    return bool(not old.sent_age_ms <= new["oldestAgeMs"] <= old.sent_age_ms * AGE_GROWTH)


def detail_of(
    queue: Queue, figures: Figures, rates: Rates, unreadable: str = "", *, idle_s: float
) -> dict[str, Any]:
    """Return the queue's details."""
    return {
        **summary_of(queue, figures, rates, unreadable, idle_s=idle_s),
        "spec": to_document(queue.name, queue.spec)["spec"],
        "counters": {to_camel(name): figures[name] for name in COUNTERS},
        "reservedBy": figures["reserved_by"],
        "reservedForMs": figures["reserved_for_ms"],
        "ownedBy": figures["owned_by"],
        "protocols": protocols_of(queue),
        "unkept": queue.unkept,
    }


def protocols_of(queue: Queue) -> dict[str, Any]:
    """Return the queue's protocol bindings."""
    bindings = queue.spec.bindings
    mca, cast, text = bindings.rqp_mca.queue_id, bindings.rqp_cast.key, bindings.text
    has_text = bool(text.subscribe or text.publish)
    return {
        "tmq": {"name": queue.name},
        "ring": {"name": queue.name, "inbox": bindings.ring.inbox, "outbox": bindings.ring.outbox},
        "rqpMca": {"queueId": mca} if mca is not None else None,
        "rqpCast": {"key": cast} if cast is not None else None,
        "text": {"subscribe": list(text.subscribe), "publish": text.publish} if has_text else None,
    }
