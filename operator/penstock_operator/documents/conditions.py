"""What a resource's status says: pure, so that nothing is written that says the same again.

A verdict is what was found out about one generation of a resource. `Ready` is always there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

MAX_MESSAGE = 2000  # characters

NOTHING = {"depth": 0, "inFlight": 0, "dead": 0}  # counts of a Queue that has no queue

Status = dict[str, Any]


class Ready(StrEnum):
    """Whether it is as its document says."""

    YES = "True"
    NO = "False"
    UNKNOWN = "Unknown"  # as the store cannot be asked


class Reason(StrEnum):
    """Why, in one word for programs; docs/kubernetes.md says what to do about each."""

    DECLARED = "Declared"  # in the store, as its document says
    PAUSED = "Paused"  # the same, and nothing is put in or given out
    INVALID = "Invalid"  # its document
    CONFLICT = "Conflict"  # somebody else has its name or number
    UNKNOWN_PEER = (
        "UnknownPeer"  # it leads to a peer that nobody declared, or by another protocol than the peer's
    )
    ACK_LEVEL_REFUSED = "AckLevelRefused"  # the store cannot keep it
    REFUSED = "Refused"  # by the store, for another reason
    STORE_UNAVAILABLE = "StoreUnavailable"
    DATASET_LOST = "DatasetLost"  # the store came back as other data
    PENDING = "Pending"  # it waits for something: a redrive, or a queue for its finalizer
    RUNNING = "Running"  # a redrive
    COMPLETE = "Complete"  # a redrive
    FAILED = "Failed"  # a redrive that cannot go on
    NO_OPERATOR = "NoOperator"  # the release with the operator was uninstalled
    REMOVED = "Removed"  # its queue, but somebody's finalizer holds the resource


@dataclass(frozen=True, slots=True)
class Verdict:
    """`counts` are further fields of the status, by their names there."""

    ready: Ready
    reason: Reason
    message: str
    counts: Mapping[str, Any] = field(default_factory=dict)


def status_of(old: Mapping[str, Any], verdict: Verdict, generation: int, now: datetime) -> Status:
    """The whole status of ours. lastTransitionTime stays while `status` of the condition does."""
    before = condition(old)
    since = before.get("lastTransitionTime")
    if since is None or before.get("status") != verdict.ready:
        since = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    ready = {
        "type": "Ready",
        "status": verdict.ready.value,
        "reason": verdict.reason.value,
        "message": verdict.message[:MAX_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
    return {"observedGeneration": generation, **verdict.counts, "conditions": [ready]}


def condition(status: Mapping[str, Any], kind: str = "Ready") -> Mapping[str, Any]:
    """{} where there is none."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def says_other(old: Mapping[str, Any], new: Status) -> bool:
    """Whether anything but the counts differs."""
    ours, theirs = condition(new), condition(old)
    same = all(ours[name] == theirs.get(name) for name in ours)
    return not same or old.get("observedGeneration") != new["observedGeneration"]


def counts_other(old: Mapping[str, Any], new: Status) -> bool:
    return any(old.get(name) != value for name, value in new.items() if name != "conditions")
