"""A thousand Queues: how much they cost, and that nothing is written about those that stay as they are."""

from __future__ import annotations

import time

from tests.operator.documents import Seen, queue
from tests.operator.program import OperatorProgram
from tests.servers import eventually

NUMBER = 1000
MAX_MEMORY = 150 << 20


def test_a_thousand_queues(operator: OperatorProgram, seen: Seen) -> None:
    began = time.monotonic()
    seen.apply(*(queue(f"q{number}", maxLength=number) for number in range(NUMBER)))
    applied = time.monotonic() - began
    ready = lambda: operator.metric("penstock_operator_resources", kind="queues", reason="Declared") == NUMBER
    eventually(ready, 120)
    print(f"applied {applied:.1f} s, ready {time.monotonic() - began:.1f} s, {operator.memory() >> 20} MiB")
    patches = operator.metric("penstock_operator_status_patches_total")
    print(patches, operator.metric("penstock_operator_events_total"))
    assert operator.memory() < MAX_MEMORY
