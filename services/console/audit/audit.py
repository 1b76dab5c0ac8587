"""Who changed what: a line in the log for every change, also for each that was refused, and one in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from services.console.access.identity import Caller
from services.console.audit.detail import written
from services.store import StoreError
from services.store.catalogue import MOST_OCTETS, AuditEntry, AuditLog

log = logging.getLogger(__name__)

DONE = "done"
FAULT = "fault"  # of ours: how far it had come the log may say
UNKNOWN = "unknown"  # it was cut off, as this process ended
WRITE_S = 2.0  # a store that is away keeps no answer waiting for longer


class Audit:
    def __init__(self, kept: AuditLog, failed: Callable[[], None]) -> None:
        """failed: is told of each line that could only be logged."""
        self.kept = kept
        self._failed = failed

    async def write(
        self,
        who: Caller,
        action: str,
        target: str,
        outcome: str,
        detail: Mapping[str, Any] | None = None,
        *,
        minor: bool = False,
    ) -> None:
        """outcome: `done`, or the label of the refusal. A store that cannot be reached takes nothing from the log.

        minor: refused, or done all the time (services.store.catalogue.audit).
        """
        self.log(who, action, target, outcome, detail)
        text = written(detail, MOST_OCTETS) if detail else ""
        entry = AuditEntry(who.who, who.role or "", who.address, action, target, outcome, text, who.auth)
        try:
            async with asyncio.timeout(WRITE_S):
                await self.kept.append(entry, minor=minor)
        except (StoreError, TimeoutError) as error:
            self._failed()
            fields = {"action": "audit_not_kept", "what": action, "target": target}
            log.error("the audit log in the store has no line of it: %r", error, extra=fields)
        except asyncio.CancelledError:  # the process ends
            self._failed()
            raise

    def log(
        self, who: Caller, action: str, target: str, outcome: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        fields = {
            "action": "audit",
            "what": action,
            "who": who.who,
            "role": who.role,
            "auth": who.auth,
            "address": who.address,
            "target": target,
            "outcome": outcome,
            "detail": dict(detail or {}),
        }
        name = target.encode(
            "utf-8", "backslashreplace"
        ).decode()  # of any octets, and a line has only letters
        log.info("%s %s %s: %s", who.who or "somebody", action, name, outcome, extra=fields)
