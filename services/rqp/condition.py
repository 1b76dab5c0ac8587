"""What is wrong with a transmission queue: in words, in the store for everybody, once in the log (rqp_mca.md 3.1)."""

from __future__ import annotations

import asyncio
import logging

from services.rqp.jobs import start_job, stop_job
from services.rqp.service import RqpService
from services.store import Queue, StoreError

log = logging.getLogger(__name__)

AGAIN_S = 1.0


class Condition:
    """`text` is '' while all is well. The store follows within moments, or as soon as it is there again."""

    def __init__(self, service: RqpService, queue: Queue, protocol: str, fence: int) -> None:
        """fence: of the ownership; the store takes nothing from an earlier owner."""
        self.text = ""
        self._service = service
        self._queue = queue
        self._protocol = protocol
        self._fence = fence
        self._changed = asyncio.Event()
        self._changed.set()  # an earlier owner may have left its own
        self._told: str | None = None
        self._logged: set[str] = set()  # what begins like these, since messages last got through
        self._errors = 0  # that the store has not been told of
        self._stuck = service.stuck.labels(service.metrics.edge, protocol)
        self._task = start_job(self._keep_telling, f"condition of {queue.name!r}", service.metrics)

    def say(self, text: str, recovered: str = "messages get through again") -> None:
        if text == self.text:
            return
        if bool(text) != bool(self.text):
            self._stuck.inc(1 if text else -1)
        fields = {"queue": self._queue.name, "protocol": self._protocol}
        if text and (label := text.partition(":")[0]) not in self._logged:  # two may come in turns for ever
            self._logged.add(label)
            log.warning("nothing gets through: %s", text, extra={"action": "rqp_stuck", **fields})
        elif not text:
            self._logged.clear()
            log.info("%s", recovered, extra={"action": "rqp_recovered", **fields})
        self.text = text
        self._changed.set()

    def report(self, text: str) -> None:
        """An attempt has failed. Told each time: somebody may wait for a message that it concerns."""
        self.say(text)
        self._errors += 1
        self._changed.set()

    async def close(self, *, lost: bool) -> None:
        """The queue is another's to judge, or nobody's. lost: it is another's already."""
        await stop_job(self._task)
        if self.text:
            self._stuck.dec()
            self.text = ""
        if not lost and self._told:
            await self._tell()

    async def _keep_telling(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not await self._tell():
                await asyncio.sleep(AGAIN_S)
                self._changed.set()

    async def _tell(self) -> bool:
        text, errors = self.text, self._errors
        if text == self._told and not errors:
            return True
        try:
            await self._service.domain(self._queue).claims.set_condition(
                self._queue, text, self._fence, errors
            )
        except StoreError as error:
            log.debug("the condition was not told: %s", error, extra={"action": "condition_untold"})
            return False
        self._told = text
        self._errors -= errors
        return True
