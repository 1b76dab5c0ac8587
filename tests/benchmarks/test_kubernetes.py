"""Test the benchmark of the operator: its report on its bounds, its exit status, and its saved results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kubernetes
from tests.benchmarks.test_results import MACHINE


def found(**ours: Any) -> dict[str, Any]:
    """Return results within all bounds, except for `ours`."""
    met = {
        "applied_s": 16.0,
        "ready_s": 20.0,
        "memory_mib": 150,
        "steady_s": 600.0,
        "writes_while_steady": 0,
        "one_queue_s": {"median": 0.1, "max": 2.0},
        "one_peer_s": {"median": 0.1, "max": 2.0},
    }
    bare = {"applied_s": 15.0, "ready_s": 15.0, "memory_mib": 60}
    return {"queues": 1000, "bare": bare, "operator": met | ours}


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the saved results."""
    monkeypatch.setattr(kubernetes, "RESULTS", tmp_path)
    monkeypatch.setattr(kubernetes, "describe", lambda _: MACHINE)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "kubernetes.json"


def run(monkeypatch: pytest.MonkeyPatch, **ours: Any) -> int:
    monkeypatch.setattr(kubernetes, "measure", lambda *_: found(**ours))
    return kubernetes.main([])


def test_values_within_their_bounds_are_met(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0
    said = capsys.readouterr().out
    assert (said.count(" met"), "missed" in said) == (5, False)
    kept = json.loads(results.read_text())
    assert set(kept["verdicts"].values()) == {"met"}
    assert kept["operator"] == found()["operator"]


@pytest.mark.parametrize(
    ("over", "what"),
    [
        ({"ready_s": 20.1}, "1000 Queues Ready"),
        ({"memory_mib": 151}, "memory in use"),
        ({"one_queue_s": {"median": 0.1, "max": 2.1}}, "one Queue Ready"),
        ({"one_peer_s": {"median": 0.1, "max": 2.1}}, "one Peer in the store"),
        ({"writes_while_steady": 1}, "requests that wrote, in 600 s"),
    ],
)
def test_value_over_its_bound_is_missed_and_saved(
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    over: dict[str, Any],
    what: str,
) -> None:
    assert run(monkeypatch, **over) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "missed" in line)
    assert what in line
    verdicts = json.loads(results.read_text())["verdicts"]
    assert [name for name, verdict in verdicts.items() if verdict == "missed" and what in name]
