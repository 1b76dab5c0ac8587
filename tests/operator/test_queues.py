"""Queue resources (docs/kubernetes.md, "Queue"), on a real API server and a real store."""

from __future__ import annotations

from tests.operator.documents import Seen, queue
from tests.operator.program import OperatorProgram


def test_a_queue_is_declared(operator: OperatorProgram, seen: Seen) -> None:
    seen.apply(queue("orders", maxLength=5))
    found = seen.becomes("queue", "orders", "True", "Declared")
    assert found["message"] == "as it is declared"
