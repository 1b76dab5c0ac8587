"""What is answered when something cannot be done: application/problem+json (RFC 9457), one table for all of the store's
refusals. `label` is the same stable word that the command line ends with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from services.store import StoreError, StoreUnavailable
from services.store.model import RegistryKeys, errors

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:penstock:problem:"
UNREADABLE = (
    ". A newer version may have written it: use that one, or replace or delete the queue here. Meanwhile its messages "
    "and dead letters can be looked at, and dead letters be brought back and purged"
)
SPOILT = (
    f". Not even what is in the queue can be found: take its field out of the store's hash {RegistryKeys().queues} by "
    "hand, and make the queue anew"
)
RETRY_S = 2  # what whoever finds the store away is told to wait

Fault = tuple[str, str]  # where, and what is wrong there


class Problem(Exception):
    """The end of a request: a status, a stable label, one line for people that says what to do."""

    def __init__(
        self,
        status: int,
        label: str,
        detail: str,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.label = label
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})

    def document(self, instance: str) -> dict[str, Any]:
        told: dict[str, Any] = {
            "type": TYPE + self.label,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "label": self.label,
        }
        if self.faults:
            told["errors"] = [{"at": at, "message": message} for at, message in self.faults]
        return told

    def body(self, instance: str) -> bytes:
        return json.dumps(self.document(instance), separators=(",", ":")).encode()


def bad_request(detail: str, faults: Sequence[Fault] = ()) -> Problem:
    return Problem(400, "bad_request", detail, faults)


def not_found(detail: str) -> Problem:
    return Problem(404, "not_found", detail)


# The first that fits counts.
STATUSES: tuple[tuple[type[StoreError], int], ...] = (
    (StoreUnavailable, 503),
    (errors.OutcomeUnknown, 504),
    (errors.QueueUnknown, 404),
    (errors.AccessDenied, 403),
    (errors.NameReserved, 403),
    (errors.MessageTooLarge, 413),
    (errors.QueueFull, 429),
    (errors.StoreFull, 507),
    (errors.StoreEvicts, 507),
    (errors.QueueUnreadable, 409),
    (errors.StoreFault, 500),
    (StoreError, 409),  # it is refused as things are
)


def problem_of(error: StoreError) -> Problem:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_S)} if status in (429, 503) else {}
    return Problem(status, error.reason, f"{error}{_advice(error)}", headers=headers)


def _advice(error: StoreError) -> str:
    if not isinstance(error, errors.QueueUnreadable):
        return ""
    return UNREADABLE if error.is_known else SPOILT
