"""Copies that the log lost, as a metric: there as 0 before the first, and never less than before."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from services.kit.metrics.log_losses import LogLosses


def shown(losses: LogLosses) -> float | None:
    registry = CollectorRegistry()
    registry.register(losses)
    return registry.get_sample_value("penstock_link_copies_lost_total")


def test_they_are_counted_from_the_first_look_on() -> None:
    losses = LogLosses()
    assert shown(losses) == 0
    losses.update(5)
    assert shown(losses) == 0
    losses.update(7)
    assert shown(losses) == 2
    losses.update(None)
    losses.update(8)
    assert shown(losses) == 3


def test_a_log_that_went_back_or_began_anew_has_lost_nothing_thereby() -> None:
    losses = LogLosses()
    losses.update(5)
    losses.update(1)
    assert shown(losses) == 0
    losses.update(0)
    losses.update(2)
    assert shown(losses) == 2
