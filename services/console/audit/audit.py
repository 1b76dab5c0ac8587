"""Write the audit log: a line for every requested change, in the process's log and in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from services.console.access.authorization import Caller
from services.console.audit.detail import to_json
from services.store import StoreError
from services.store.catalogue import MOST_OCTETS, AuditEntry, AuditLog

log = logging.getLogger(__name__)

DONE = "done"
FAULT = "fault"  # internal error; the change may have taken effect in part
UNKNOWN = "unknown"  # interrupted as the process stopped
WRITE_S = 2.0  # timeout of writes to the store


class Audit:
    """The audit log."""

    def __init__(self, kept: AuditLog, failed: Callable[[], None]) -> None:
        """failed: called for each line that could not be written to the store."""
        self.kept = kept
        self._failed = failed

    async def write(
        self,
        caller: Caller,
        action: str,
        target: str,
        outcome: str,
        detail: Mapping[str, Any] | None = None,
        *,
        minor: bool = False,
    ) -> None:
        """Write a line. outcome: `done` or the label of the problem. The process's log has it even if the store fails.

        minor: a refusal or a frequent action, kept apart (services.store.catalogue.audit).
        """
        self.log(caller, action, target, outcome, detail)
        text = to_json(detail, MOST_OCTETS) if detail else ""
        entry = AuditEntry(
            caller.name, caller.role or "", caller.address, action, target, outcome, text, caller.auth
        )
        try:
            async with asyncio.timeout(WRITE_S):
                await self.kept.append(entry, minor=minor)
        except (StoreError, TimeoutError) as error:
            self._failed()
            fields = {"action": "audit_not_kept", "what": action, "target": target}
            log.error("audit log line not written to the store: %r", error, extra=fields)
        except asyncio.CancelledError:  # the process stops
            self._failed()
            raise

    def log(
        self, caller: Caller, action: str, target: str, outcome: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Write a line to the process's log only."""
        fields = {
            "action": "audit",
            "what": action,
            "who": caller.name,
            "role": caller.role,
            "auth": caller.auth,
            "address": caller.address,
            "target": target,
            "outcome": outcome,
            "detail": dict(detail or {}),
        }
        name = target.encode("utf-8", "backslashreplace").decode()
        log.info("%s %s %s: %s", caller.name or "unauthenticated client", action, name, outcome, extra=fields)
