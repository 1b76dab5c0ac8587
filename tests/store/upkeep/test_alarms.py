"""Alarms are reported as 0 at the start (docs/operations.md, "What to watch")."""

from __future__ import annotations

from services.kit.metrics.metrics import Metrics
from services.store import Store
from services.store.model.alarms import ALARMS
from tests.kit.metrics.test_metrics import samples


async def test_observer_gets_every_alarm_with_0_at_start() -> None:
    metrics = Metrics("tmq")
    store = Store("redis://localhost:1/0", "tmq", observe=metrics.store_observer)
    for alarm in ALARMS:
        labels = {"edge": "tmq", "reason": alarm}
        assert samples(metrics)[f"penstock_store_events_total{labels}"] == 0
    await store.close()
