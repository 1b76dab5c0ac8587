"""Outcomes of USERs in the metrics (docs/operations.md)."""

from __future__ import annotations

from pathlib import Path

from protos.ring import DropReason
from services.kit.metrics.metrics import Metrics
from services.ring.node.counts import Counts, UserOutcome
from tests.live import until
from tests.ring.users.members import Ring, Start
from tests.servers import Server

METRICS = Path(__file__).parents[3] / "docs" / "metrics.md"


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, {"edge": "ring", **labels})


def test_every_outcome_label_is_exported_from_the_start() -> None:
    metrics = Metrics("ring")
    Counts(metrics)
    assert {value(metrics, "penstock_ring_users_total", what=what) for what in UserOutcome} == {0}
    assert {value(metrics, "penstock_ring_users_dropped_total", why=why.value) for why in DropReason} == {0}


def test_every_outcome_label_is_documented() -> None:
    text = METRICS.read_text()
    assert [what for what in UserOutcome if f"`{what}`" not in text] == []


def test_counts_are_published_once() -> None:
    metrics = Metrics("ring")
    counted = Counts(metrics)
    counted.now[UserOutcome.LATE] += 2
    counted.now[DropReason.SEEN.value] += 1
    for _ in range(2):
        counted.publish()
    assert value(metrics, "penstock_ring_users_total", what="late") == 2
    assert value(metrics, "penstock_ring_users_dropped_total", why="seen") == 1


async def test_node_publishes_its_counts(start: Start, server: Server) -> None:
    node = await start(server, b"a")
    await node.declare("out", bindings={"ring": {"outbox": 1}})
    Ring([node])
    await node.put("out", b"round a ring of one")
    await until(lambda: value(node.metrics, "penstock_ring_users_total", what="taken_off") == 1)
    assert value(node.metrics, "penstock_ring_users_total", what="begun") == 1
