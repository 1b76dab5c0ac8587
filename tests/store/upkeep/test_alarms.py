"""Alarms are told as 0 before there is one: docs/operations.md, "What to watch"."""

from __future__ import annotations

from services.kit.metrics.metrics import Metrics
from services.store import Store
from services.store.model.alarms import ALARMS
from tests.kit.metrics.test_metrics import samples


async def test_whoever_observes_a_store_hears_of_every_alarm_at_once() -> None:
    metrics = Metrics("tmq")
    store = Store("redis://localhost:1/0", "tmq", observe=metrics.store_observer)
    for alarm in ALARMS:
        labels = {"edge": "tmq", "reason": alarm}
        assert samples(metrics)[f"penstock_store_events_total{labels}"] == 0
    await store.close()
