"""The store's memory, as metrics: what is not known is not told."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics.store_memory import StoreMemory
from services.store.redis.memory import Memory


def shown(memory: StoreMemory) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(memory)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_it_is_told_as_it_was_found() -> None:
    memory = StoreMemory()
    memory.update(Memory(300, 1000, 0.5))
    assert shown(memory) == {
        "penstock_store_used_bytes": 300,
        "penstock_store_limit_bytes": 1000,
        "penstock_store_fullest_ratio": 0.5,
    }


def test_what_nobody_says_is_no_0() -> None:
    memory = StoreMemory()
    assert shown(memory) == {}
    memory.update(Memory(300, None))
    assert shown(memory) == {"penstock_store_used_bytes": 300}
    memory.update(Memory(None, None))
    assert shown(memory) == {}
    memory.update(Memory(300, 1000, 0.5))
    memory.update(None)
    assert shown(memory) == {}
