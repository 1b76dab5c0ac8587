"""A queue as the API tells of it: its document, its figures, and what changed between two looks."""

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
OLDER = 1.1  # by so much an age has to grow until it is worth telling
UNTAKEN_S = 60.0  # messages that nobody takes for so long, and that wait for so long, want somebody to look
Rates = dict[str, float | None]


@dataclass(slots=True, eq=False)
class Row:
    """One queue in one look. `base`: the figures from which the next rates are reckoned."""

    queue: Queue
    base: Figures
    rates: Rates
    summary: dict[str, Any]
    version: int  # of the look in which it last changed
    told_age_ms: int = 0  # of the oldest message, as of then
    taken_at: float = 0.0  # monotonic: when somebody took something out last, as far as we have seen
    text: bytes | None = None
    is_read: bool = True  # False: `base` is older, or nothing at all

    def encoded(self) -> bytes:
        if self.text is None:
            self.text = encode(self.summary)
        return self.text


def rates_of(names: Mapping[str, str], now: Figures, before: Figures | None, seconds: float) -> Rates:
    """Nothing is known without a look before."""
    if before is None or seconds <= 0:
        return dict.fromkeys(names)
    return {rate: round(max(now[name] - before[name], 0) / seconds, 2) for rate, name in names.items()}


def taken_at(figures: Figures, old: Row | None, now: float) -> float:
    """Takers come now and then: one look in which nobody came says little. What was before the first look nobody
    knows, so that it counts as if somebody had just come; and so it does where nothing was there to be taken, as the
    oldest message may be one that somebody has had for long."""
    if old is not None and old.base["ready"] and old.base["delivered"] == figures["delivered"]:
        return old.taken_at
    return now if old is not None or figures["delivered"] else float("-inf")


NOTHING: Figures = {
    **dict.fromkeys(
        ("ready", "in_flight", "dead_letters", "bytes", "oldest_age_ms", "reserved_for_ms", *COUNTERS), 0
    ),
    **dict.fromkeys(("reserved_by", "owned_by", "condition"), ""),
}


def unread_row(queue: Queue, old: Row | None, error: StoreError, version: int, unreadable: str = "") -> Row:
    """Of a queue that is damaged, or whose shard is away: as it was seen last, and what is wrong with it."""
    if old is not None and old.queue.qid != queue.qid:
        old = None
    base = old.base if old is not None else NOTHING
    rates: Rates = dict.fromkeys(RATES)
    summary = {
        **summary_of(queue, base, rates, unreadable, untaken_s=0.0),
        "condition": f"how it stands cannot be read: {error}",
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
        old.taken_at if old is not None else time.monotonic(),
        is_read=False,  # rates begin anew
    )


def summary_of(
    queue: Queue, figures: Figures, rates: Rates, unreadable: str = "", *, untaken_s: float
) -> dict[str, Any]:
    """untaken_s: for so long nobody has taken anything out."""
    spec = queue.spec
    waits = figures["ready"] > 0 and figures["oldest_age_ms"] > UNTAKEN_S * 1000
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
        "nobodyTakes": waits and not spec.paused and untaken_s > UNTAKEN_S,
        "rates": rates,
        "ackLevel": spec.ack_level,
        "condition": unreadable or figures["condition"],
        "unreadable": unreadable or None,
    }


def has_changed(new: dict[str, Any], old: Row) -> bool:
    """Since it was last told. A message that only grew older by less than a tenth is not worth a line."""
    if {**new, "oldestAgeMs": 0} != {**old.summary, "oldestAgeMs": 0}:
        return True
    return bool(not old.told_age_ms <= new["oldestAgeMs"] <= old.told_age_ms * OLDER)


def detail_of(
    queue: Queue, figures: Figures, rates: Rates, unreadable: str = "", *, untaken_s: float
) -> dict[str, Any]:
    return {
        **summary_of(queue, figures, rates, unreadable, untaken_s=untaken_s),
        "spec": to_document(queue.name, queue.spec)["spec"],
        "counters": {to_camel(name): figures[name] for name in COUNTERS},
        "reservedBy": figures["reserved_by"],
        "reservedForMs": figures["reserved_for_ms"],
        "ownedBy": figures["owned_by"],
        "protocols": protocols_of(queue),
        "unkept": queue.unkept,
    }


def protocols_of(queue: Queue) -> dict[str, Any]:
    bindings = queue.spec.bindings
    mca, cast, text = bindings.rqp_mca.queue_id, bindings.rqp_cast.key, bindings.text
    is_of_text = bool(text.subscribe or text.publish)
    return {
        "tmq": {"name": queue.name},
        "ring": {"name": queue.name, "inbox": bindings.ring.inbox, "outbox": bindings.ring.outbox},
        "rqpMca": {"queueId": mca} if mca is not None else None,
        "rqpCast": {"key": cast} if cast is not None else None,
        "text": {"subscribe": list(text.subscribe), "publish": text.publish} if is_of_text else None,
    }
