"""Publish the condition of a transmission queue: in the store, in the log and in a metric (rqp_mca.md 3.1)."""

from __future__ import annotations

import asyncio
import logging

from services.rqp.jobs import start_job, stop_job
from services.rqp.service import RqpService
from services.store import Queue, StoreError

log = logging.getLogger(__name__)

AGAIN_S = 1.0


class Condition:
    """Why the messages of one queue are not delivered; `text` is '' while they are.

    Changes are written to the store in the background and retried while it is unavailable.
    """

    def __init__(self, service: RqpService, queue: Queue, protocol: str, fence: int) -> None:
        """fence: fencing token of the ownership; the store ignores writes of earlier owners."""
        self.text = ""
        self._service = service
        self._queue = queue
        self._protocol = protocol
        self._fence = fence
        self._changed = asyncio.Event()
        self._changed.set()  # an earlier owner may have left a condition
        self._stored: str | None = None
        self._logged: set[str] = set()  # labels logged since messages were last delivered
        self._errors = 0  # not yet added to the store's count
        self._stuck = service.stuck.labels(service.metrics.edge, protocol)
        self._task = start_job(self._keep_storing, f"condition of {queue.name!r}", service.metrics)

    def set(self, text: str, recovered: str = "messages are delivered again") -> None:
        """Set the condition; '' clears it. Each label (the text up to ':') is logged once per outage."""
        if text == self.text:
            return
        if bool(text) != bool(self.text):
            self._stuck.inc(1 if text else -1)
        fields = {"queue": self._queue.name, "protocol": self._protocol}
        # two labels may alternate for ever
        if text and (label := text.partition(":")[0]) not in self._logged:
            self._logged.add(label)
            log.warning("messages are not delivered: %s", text, extra={"action": "rqp_stuck", **fields})
        elif not text:
            self._logged.clear()
            log.info("%s", recovered, extra={"action": "rqp_recovered", **fields})
        self.text = text
        self._changed.set()

    def report_failure(self, text: str) -> None:
        """Set the condition and count a failed attempt in the store."""
        self.set(text)
        self._errors += 1
        self._changed.set()

    async def close(self, *, lost: bool) -> None:
        """Stop reporting and clear the condition. lost: another process owns the queue; leave the store alone."""
        await stop_job(self._task)
        if self.text:
            self._stuck.dec()
            self.text = ""
        if not lost and self._stored:
            await self._store()

    async def _keep_storing(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not await self._store():
                await asyncio.sleep(AGAIN_S)
                self._changed.set()

    async def _store(self) -> bool:
        text, errors = self.text, self._errors
        if text == self._stored and not errors:
            return True
        try:
            await self._service.domain(self._queue).claims.set_condition(
                self._queue, text, self._fence, errors
            )
        except StoreError as error:
            log.debug("condition not stored, will retry: %s", error, extra={"action": "condition_untold"})
            return False
        self._stored = text
        self._errors -= errors
        return True
