"""Test that the measure of RQP/cast counts correctly, on real edges and stores with tiny counts."""

from __future__ import annotations

import pytest

from benchmarks.measures import rqp_cast
from benchmarks.measures.bench import Bench
from tests.benchmarks.conftest import TINY


def test_sessions_are_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rqp_cast, "KEYS", range(1, 4))
    (found,) = rqp_cast.measure(bench)
    assert found.note == ""
    assert len(found.values) == TINY.rounds
    assert all(value > 0 for value in found.values)
    assert str(found.target) == ">= 300"
