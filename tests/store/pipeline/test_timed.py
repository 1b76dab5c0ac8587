"""The store's observer measures its latency."""

from __future__ import annotations

import pytest

from services.kit.metrics.metrics import Metrics
from tests.servers import Client, Server
from tests.store.desk import Desk

PAUSE_S = 0.4


async def test_latency_of_a_hung_store_is_observed(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each call to a hung store is measured once."""
    metrics = Metrics("test")
    monkeypatch.setattr(Desk, "_observe", metrics.store_observer)

    def store_calls(what: str) -> float:
        metrics.publish_store_calls()
        return (
            metrics.registry.get_sample_value(f"penstock_store_call_seconds_{what}", {"edge": "test"}) or 0.0
        )

    async with Desk(server) as desk:
        queue = await desk.queue()
        calls, number, seconds = desk.pipe.calls, store_calls("count"), store_calls("sum")
        assert number == calls
        client.call("CLIENT", "PAUSE", int(PAUSE_S * 1000), "WRITE")
        await desk.publishing(queue, b"a", b"b", b"c")
        assert store_calls("count") - number == desk.pipe.calls - calls >= 1
        assert store_calls("sum") - seconds > PAUSE_S / 2
