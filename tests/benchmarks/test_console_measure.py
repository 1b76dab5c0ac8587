"""Test the benchmark of the console at a tiny size, without the page, and its report on its bounds."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import loaded_edge
from benchmarks.console import __main__ as command
from benchmarks.console import beside, busy, cold, watching
from benchmarks.console.findings import findings
from benchmarks.console.routes import FILTERS
from benchmarks.console.shown import SHOWN, SMALL
from benchmarks.kept import write_docs

SIZE = ("--queues", "20", "--dead", "3000", "--asked", "4", "--seconds", "0.5")
NAME = "console-20-queues-3000-dead-4-asked-0.5-seconds-beside-cold-routes-walk-watch.json"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the results of a run."""
    monkeypatch.setattr(watching, "SETTLED_S", 0.5)
    monkeypatch.setattr(beside, "ROUNDS", 1)
    for each in ("PEERS", "JOBS", "CONNECTIONS"):
        monkeypatch.setattr(busy, each, 20)
    monkeypatch.setattr(busy, "SAMPLES", 600)
    monkeypatch.setattr(cold, "PATHS", {"overview": cold.PATHS["overview"]})
    monkeypatch.setattr(cold, "ROUNDS", 1)
    monkeypatch.setattr(loaded_edge, "QUEUES", 20)
    monkeypatch.setattr(cold, "SILENCE_S", 0.1)
    monkeypatch.setattr(beside, "ROUND_S", 0.1)
    parts = [word for part in ("routes", "cold", "walk", "watch", "beside") for word in ("--only", part)]
    assert command.main([*SIZE, *parts, "--results", str(tmp_path)]) == 0
    return tmp_path / NAME


def test_small_run_completes_and_is_shown(whole: Path, tmp_path: Path) -> None:
    found: dict[str, Any] = json.loads(whole.read_text())
    assert (found["failed"], found["is_full"]) == ({}, False)
    assert (found["fill"]["queues"], found["fill"]["dead"]) == (20, 3000)
    assert set(FILTERS) <= {kind.removeprefix("dead letters ") for kind in found["routes"]}
    assert all(0 < each["one"]["p50"] <= each["one"]["most"] for each in found["routes"].values())
    octets = {kind: each["one"]["octets"] for kind, each in found["routes"].items()}
    assert min(octets[kind] for kind in ("connections", "peers", "jobs", "audit")) > 1_000  # of twenty
    assert all(0 < each["p50"] <= each["most"] for each in found["cold"].values())
    assert found["walk"]["pages"] > 0
    assert found["watched"]["none does"]["octets_per_s"] > 0
    assert {each.verdict for each in findings(found)} <= {"met", "missed"}
    measures = ["routes", "routes", "cold", "walk", "watched", "watched", "beside"]
    assert [each.measure for each in findings(found)] == measures
    for each in found["beside"].values():
        assert each["rounds"] == [each["rate"]]  # the median of one round is its rate
        assert each["rate"] > 0
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- console:begin -->\n<!-- console:end -->\nafter\n")
    write_docs(page, whole, command.NAME, SHOWN.markdown)
    assert SMALL in page.read_text()
    assert "| dead letters of a reason |" in page.read_text()
    console = Console(file=io.StringIO(), width=200)
    SHOWN.show(found, console)


def test_bounds_that_are_exceeded_are_missed() -> None:
    times = {"p50": 1.0, "p99": 20.0, "most": 30.0, "octets": 1}
    slow = {**times, "p99": 51.0}
    found = {
        "routes": {"one": {"one": times, "four": times}, "other": {"one": times, "four": slow}},
        "cold": {"one": {"p50": 1.0, "most": 50.0}, "other": {"p50": 2.0, "most": 50.1}},
        "page": {"octets": 199_000, "with the first plot": 200_001, "list there": 1000},
        "beside": {"alone, again": {"share": 1.01}, "looked at": {"share": 0.979}},
        "failed": {},
    }
    assert [(each.verdict, each.note) for each in findings(found)] == [
        ("met", "(one)"),
        ("missed", "(other)"),
        ("missed", "(other)"),
        ("met", ""),
        ("missed", ""),
        ("met", ""),
        ("missed", "(one more alone: 1.010)"),
    ]
