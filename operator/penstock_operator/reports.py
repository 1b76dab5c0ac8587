"""What the analytics job found last, looked for in the store, for the operator's metrics."""

from __future__ import annotations

import asyncio
import logging

from penstock_operator.metrics import Metrics
from services.store import Store, StoreError, StoreUnavailable
from services.store.reports import read_report

log = logging.getLogger(__name__)


class Reports:
    def __init__(self, store: Store, metrics: Metrics, interval_s: float) -> None:
        self._store = store
        self._told = metrics.report
        self._interval_s = interval_s
        self._trouble = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(self._interval_s)

    async def _look(self) -> None:
        try:
            self._told.report = await read_report(self._store.registry)
            trouble = ""
        except StoreUnavailable:  # what was told holds until somebody can look again: it says of when it is
            return
        except StoreError as error:
            self._told.report, trouble = None, str(error)
        if trouble not in ("", self._trouble):
            log.warning("%s", trouble, extra={"action": "report_unreadable"})
        self._trouble = trouble
