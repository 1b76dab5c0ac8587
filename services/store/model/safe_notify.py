"""Looks that are taken again and again, and what they find: no fault of whoever is told of it ends them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger(__name__)

FAULT = "a look at the store failed: %r"
FAULT_FIELDS = {"action": "look_fault"}
FoundT = TypeVar("FoundT")


def notify_safely(found: FoundT | None, tell: Callable[[FoundT | None], None]) -> None:
    """tell: where it fails, it is told None, as what it was told before would stand for ever."""
    try:
        tell(found)
    except Exception as error:
        log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
        if found is not None:
            notify_safely(None, tell)
