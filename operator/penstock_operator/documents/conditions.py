"""Build the status of a resource from a verdict on one of its generations. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

MAX_MESSAGE = 2000  # characters

NOTHING = {"depth": 0, "inFlight": 0, "dead": 0}  # counts of a Queue without a queue in the store

Status = dict[str, Any]


class Ready(StrEnum):
    """The status of the condition Ready: whether the resource is as declared."""

    YES = "True"
    NO = "False"
    UNKNOWN = "Unknown"  # the store is unavailable


class Reason(StrEnum):
    """The reason of the condition Ready; docs/kubernetes.md says what to do about each."""

    DECLARED = "Declared"  # in the store as declared
    PAUSED = "Paused"  # as declared; puts and deliveries are stopped
    INVALID = "Invalid"  # the document is invalid
    CONFLICT = "Conflict"  # another resource has its name or number
    UNKNOWN_PEER = "UnknownPeer"  # remote.peers names a missing peer, or one of another protocol
    ACK_LEVEL_REFUSED = "AckLevelRefused"  # stricter than the store supports
    REFUSED = "Refused"  # refused by the store for another reason
    STORE_UNAVAILABLE = "StoreUnavailable"
    DATASET_LOST = "DatasetLost"  # the store came back with other data
    PENDING = "Pending"  # waiting: a Redrive, or a Queue for its finalizer
    RUNNING = "Running"  # the Redrive is running
    COMPLETE = "Complete"  # the Redrive is complete
    FAILED = "Failed"  # the Redrive cannot continue
    NO_OPERATOR = "NoOperator"  # the operator's release was uninstalled
    REMOVED = "Removed"  # the queue is removed, a foreign finalizer holds the resource


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of reconciling one generation. `counts` are further fields of the status."""

    ready: Ready
    reason: Reason
    message: str
    counts: Mapping[str, Any] = field(default_factory=dict)


def status_of(old: Mapping[str, Any], verdict: Verdict, generation: int, now: datetime) -> Status:
    """Build the status. lastTransitionTime only changes with the condition's `status`."""
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
    """Return the condition of this type, or {}."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def differs(old: Mapping[str, Any], new: Status) -> bool:
    """Return whether anything but the counts differs."""
    ours, theirs = condition(new), condition(old)
    same = all(ours[name] == theirs.get(name) for name in ours)
    return not same or old.get("observedGeneration") != new["observedGeneration"]


def counts_differ(old: Mapping[str, Any], new: Status) -> bool:
    """Return whether anything but the conditions differs."""
    return any(old.get(name) != value for name, value in new.items() if name != "conditions")
