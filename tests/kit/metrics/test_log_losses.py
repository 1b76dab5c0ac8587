"""Test the metric of lost copies: 0 from the start, and never falling."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from services.kit.metrics.log_losses import LogLosses


def shown(losses: LogLosses) -> float | None:
    registry = CollectorRegistry()
    registry.register(losses)
    return registry.get_sample_value("penstock_link_copies_lost_total")


def test_losses_are_counted_from_the_first_poll() -> None:
    losses = LogLosses()
    assert shown(losses) == 0
    losses.update(5)
    assert shown(losses) == 0
    losses.update(7)
    assert shown(losses) == 2
    losses.update(None)
    losses.update(8)
    assert shown(losses) == 3


def test_smaller_count_of_an_older_log_adds_nothing() -> None:
    losses = LogLosses()
    losses.update(5)
    losses.update(1)
    assert shown(losses) == 0
    losses.update(0)
    losses.update(2)
    assert shown(losses) == 2
