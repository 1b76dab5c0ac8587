"""Why links of a ring broke, as metrics tell it: a few labels, where people are told in words (docs/operations.md)."""

from __future__ import annotations

from services.ring.node.users import NAMESAKE

OTHER = "other"  # words that are not among these
STORE = "store"  # of both links: the store says why in words of its own (ring.md 4.7)
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
    "nobody leads this ring": "no_leader",  # 4.6
    "nobody leads this ring, and the predecessor has said nothing": "no_leader",
    "this node is stopping": "stopping",
    "stopping": "stopping",
    f"name: {NAMESAKE}": "same_name",
    **{label: label for label in ("unknown_type", "too_long", "truncated", "request_timeout")},  # 2.5, 2.7
    **{label: label for label in ("not_an_ack", "ack_for_nothing")},  # 2.5
}


def reason_of(side: str, why: str) -> str:
    """The label of what people are told."""
    return REASONS.get(why, STORE if side == "both" else OTHER)
