"""Metric labels for the reasons why links broke, which logs and status give as text (docs/operations.md)."""

from __future__ import annotations

from services.ring.node.users import DUPLICATE_NAME

OTHER = "other"  # any other text
STORE = "store"  # both links closed: the text is the store's (ring.md 4.7)
REASONS = {
    "the predecessor closed it": "closed",
    "the successor closed it": "closed",
    "it closed": "closed",
    "it was reset": "reset",
    "no answer in time": "ack_timeout",  # 4.5
    "the predecessor is silent": "silence",  # 2.6
    "the predecessor is silent: no proposal comes around": "hung",  # 4.6
    "forced by the predecessor": "forced",  # 2.3
    "another node waits in vain": "vain",  # 3.8
    "another ring was found": "other_ring",  # 4.3
    "the ring has no leader": "no_leader",  # 4.6
    "the ring has no leader, and the predecessor is silent": "no_leader",
    "this node is stopping": "stopping",
    "stopping": "stopping",
    f"name: {DUPLICATE_NAME}": "same_name",
    **{label: label for label in ("unknown_type", "too_long", "truncated", "request_timeout")},  # 2.5, 2.7
    **{label: label for label in ("not_an_ack", "ack_for_nothing")},  # 2.5
}


def reason_of(side: str, why: str) -> str:
    """Return the metric label of a reason."""
    return REASONS.get(why, STORE if side == "both" else OTHER)
