"""What the operator tells of a store in metrics, and does nothing about: how queues stand, its memory, the report."""

from __future__ import annotations

import asyncio
from functools import partial

from penstock_operator.metrics.metrics import Metrics
from penstock_operator.store.stranded import Stranded
from services.store import Store
from services.store.redis import memory_of
from services.store.report import keep_reading
from services.store.upkeep import POLL_INTERVAL_S, copies_lost, poll_store, read_store_stats


async def keep_telling(store: Store, metrics: Metrics, sweep_s: float) -> None:
    """Until it is cancelled. sweep_s: how often at least."""
    often = min(POLL_INTERVAL_S, sweep_s)
    async with asyncio.TaskGroup() as group:
        group.create_task(Stranded(store, metrics, sweep_s).run())
        group.create_task(keep_reading(store.registry, metrics.report.update, sweep_s))
        group.create_task(
            poll_store(
                partial(read_store_stats, store.registry, store.listing), metrics.queue_states.update, often
            )
        )
        group.create_task(poll_store(partial(copies_lost, store.domains), metrics.log_losses.update, often))
        group.create_task(poll_store(partial(memory_of, store.connector), metrics.store_memory.update, often))
