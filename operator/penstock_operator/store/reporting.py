"""Export metrics of the store: queue statistics, log losses, memory, and the analytics report."""

from __future__ import annotations

import asyncio
from functools import partial

from penstock_operator.metrics.metrics import Metrics
from penstock_operator.store.stranded import Stranded
from services.store import Store
from services.store.redis import memory_of
from services.store.report import keep_reading
from services.store.upkeep import POLL_INTERVAL_S, copies_lost, poll_store, read_store_stats


async def report_metrics(store: Store, metrics: Metrics, sweep_s: float) -> None:
    """Export until cancelled. sweep_s: longest interval."""
    interval_s = min(POLL_INTERVAL_S, sweep_s)
    async with asyncio.TaskGroup() as group:
        group.create_task(Stranded(store, metrics, sweep_s).run())
        group.create_task(keep_reading(store.registry, metrics.report.update, sweep_s))
        group.create_task(
            poll_store(
                partial(read_store_stats, store.registry, store.listing),
                metrics.queue_states.update,
                interval_s,
            )
        )
        group.create_task(
            poll_store(partial(copies_lost, store.domains), metrics.log_losses.update, interval_s)
        )
        group.create_task(
            poll_store(partial(memory_of, store.connector), metrics.store_memory.update, interval_s)
        )
