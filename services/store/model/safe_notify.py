"""Report polled values to callbacks whose failures must not end the poll."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger(__name__)

FAULT = "internal error in a store poll: %r"
FAULT_FIELDS = {"action": "look_fault"}
FoundT = TypeVar("FoundT")


def notify_safely(found: FoundT | None, report: Callable[[FoundT | None], None]) -> None:
    """Call `report(found)`; if that fails, call `report(None)`, so that no outdated value stays."""
    try:
        report(found)
    except Exception as error:
        log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
        if found is not None:
            notify_safely(None, report)
