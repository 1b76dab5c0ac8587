"""How the store stands, looked at again and again for metrics alone."""

from __future__ import annotations

import asyncio
from functools import partial

from penstock_operator.metrics import Metrics
from services.store import Store
from services.store.memory import memory_of
from services.store.reports import keep_reading
from services.store.standing import LOOK_S, copies_lost, keep_looking, standings


class Looks:
    def __init__(self, store: Store, metrics: Metrics, sweep_s: float) -> None:
        often = min(LOOK_S, sweep_s)
        self._all = (
            partial(keep_looking, partial(standings, store), metrics.queue_states.tell, often),
            partial(keep_looking, partial(copies_lost, store), metrics.log_losses.tell, often),
            partial(keep_looking, partial(memory_of, store.connector), metrics.store_memory.tell, often),
            partial(keep_reading, store.registry, metrics.report.tell, sweep_s),
        )

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for keep in self._all:
                group.create_task(keep())
