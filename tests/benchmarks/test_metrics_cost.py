"""Test the measure of the metrics' cost at a tiny size, and its saved results."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from benchmarks import loaded_edge, metrics_cost

MODES = {mode: metrics_cost.MODES[mode] for mode in ("off", "on")}


def test_every_round_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that the figures of each round are saved, so that the printed medians can be computed again."""
    monkeypatch.setattr(metrics_cost, "MODES", MODES)
    monkeypatch.setattr(metrics_cost, "ROUND_S", 0.05)
    monkeypatch.setattr(loaded_edge, "QUEUES", 20)
    metrics_cost.main(["--rounds", "2", "--results", str(tmp_path)])
    kept = json.loads((tmp_path / "metrics-cost.json").read_text())
    assert kept["machine"]["cores"] >= 1
    assert {mode: len(rounds) for mode, rounds in kept["rounds"].items()} == {"off": 2, "on": 2}
    printed = capsys.readouterr().out.splitlines()
    for line, rounds in zip(printed, kept["rounds"].values(), strict=False):
        middle = statistics.median(each["messages_per_s"] for each in rounds)
        assert f"{middle:,.0f} messages/s" in line
