"""Map errors of the store to verdicts."""

from __future__ import annotations

from penstock_operator.documents.conditions import Ready, Reason, Verdict
from services.store.model import (
    AckLevelRefused,
    DatasetLost,
    DomainMismatch,
    NumberTaken,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
)

REASONS: dict[type[StoreError], tuple[Ready, Reason]] = {  # the first match counts
    DatasetLost: (Ready.NO, Reason.DATASET_LOST),
    StoreUnavailable: (Ready.UNKNOWN, Reason.STORE_UNAVAILABLE),
    OutcomeUnknown: (Ready.UNKNOWN, Reason.STORE_UNAVAILABLE),
    NumberTaken: (Ready.NO, Reason.CONFLICT),
    DomainMismatch: (Ready.NO, Reason.CONFLICT),
    AckLevelRefused: (Ready.NO, Reason.ACK_LEVEL_REFUSED),
    StoreError: (Ready.NO, Reason.REFUSED),
}


def refused(error: StoreError) -> Verdict:
    """Return the verdict for an error of the store."""
    ready, reason = next(found for kind, found in REASONS.items() if isinstance(error, kind))
    return Verdict(ready, reason, str(error))
