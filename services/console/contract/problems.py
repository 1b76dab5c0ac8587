"""Problem documents (RFC 9457), with one table for all errors of the store.

`label` is the same stable word that the command line prints.
"""

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
    ". A newer version may have written it: use that version, or replace or delete the queue here. You can still "
    "browse and purge its messages, and browse, redrive and purge its dead letters"
)
LOST_ID = (
    f". The queue's messages cannot be found: delete its field in the store's hash {RegistryKeys().queues} manually, "
    "and create the queue again"
)
RETRY_S = 2  # value of Retry-After

Fault = tuple[str, str]  # path of a field, and what is wrong with it


class Problem(Exception):
    """An error response: a status, a stable label, and one line of text that says what to do."""

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
        """Return the problem document. instance: the path of the request."""
        document: dict[str, Any] = {
            "type": TYPE + self.label,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "label": self.label,
        }
        if self.faults:
            document["errors"] = [{"at": at, "message": message} for at, message in self.faults]
        return document

    def body(self, instance: str) -> bytes:
        """Return the problem document as JSON."""
        return json.dumps(self.document(instance), separators=(",", ":")).encode()


def bad_request(detail: str, faults: Sequence[Fault] = ()) -> Problem:
    """Return a Problem 400."""
    return Problem(400, "bad_request", detail, faults)


def not_found(detail: str) -> Problem:
    """Return a Problem 404."""
    return Problem(404, "not_found", detail)


# the first matching row counts
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
    (StoreError, 409),
)


def problem_of(error: StoreError) -> Problem:
    """Return the problem for an error of the store."""
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_S)} if status in (429, 503) else {}
    return Problem(status, error.reason, f"{error}{_advice(error)}", headers=headers)


def _advice(error: StoreError) -> str:
    if not isinstance(error, errors.QueueUnreadable):
        return ""
    return UNREADABLE if error.is_known else LOST_ID
