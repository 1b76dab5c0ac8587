"""Test many Queues: their cost, and no writes for unchanged ones.

Benchmarks measure time and memory of a thousand.
"""

from __future__ import annotations

from typing import Any

from tests.operator.conftest import NewOperator
from tests.operator.resource_documents import Seen, queue
from tests.servers import eventually

NUMBER = 200
MAX_MEMORY = 120 << 20  # bytes
PASSES = 2
SWEEPS = "penstock_operator_sweeps_total"


def test_passes_over_many_unchanged_queues_write_nothing(new_operator: NewOperator, seen: Seen) -> None:
    operator = new_operator(sweep_s=2).ready()
    seen.apply(*(queue(f"q{number}", maxLength=number) for number in range(NUMBER)))

    def are_declared() -> bool:
        return operator.metric("penstock_operator_resources", kind="queues", reason="Declared") == NUMBER

    eventually(are_declared, 240)
    eventually(lambda: operator.metric("penstock_operator_events_total", reason="Declared") == NUMBER)
    eventually(lambda: operator.metric("penstock_operator_status_patches_total") == NUMBER)
    before, passes = versions(seen), operator.metric(SWEEPS, result="done")
    eventually(lambda: operator.metric(SWEEPS, result="done") >= passes + PASSES, 240)
    assert versions(seen) == before
    assert operator.metric("penstock_operator_events_total") == NUMBER
    assert operator.metric("penstock_operator_status_patches_total") == NUMBER
    assert operator.memory() < MAX_MEMORY, f"{operator.memory() >> 20} MiB"


def versions(seen: Seen) -> dict[str, Any]:
    """Return the resource versions of all objects, which change with every write."""
    found = seen.cluster.items("queues", seen.namespace)
    assert len(found) == NUMBER
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}
