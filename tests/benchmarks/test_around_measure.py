"""Test that the measure of the ring counts correctly, on real nodes with tiny counts."""

from __future__ import annotations

import pytest

from benchmarks.measures import around
from benchmarks.measures.bench import Bench
from benchmarks.peers import ring_nodes
from benchmarks.peers.ring_nodes import is_closed
from tests.benchmarks.conftest import TINY


def test_the_ring_is_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (around, ring_nodes):
        monkeypatch.setattr(module, "NODES", 3)
    found = around.measure(bench)
    assert {one.note for one in found} == {""}
    assert [len(one.values) for one in found] == [TINY.rounds] * len(around.WHAT)
    assert all(value > 0 for one in found for value in one.values)
    assert [str(one.target) for one in found] == ["<= 5", "<= 5", ">= 2000", "<= 20", "None"]


def test_a_ring_is_closed_when_it_has_all_nodes_and_one_leader() -> None:
    def status(name: str, after: str, leader: str = "b") -> dict[str, object]:
        return {"name": name, "successor": {"name": after}, "leader": leader, "is_leader": name == leader}

    assert is_closed([status("a", "b"), status("b", "a")])
    assert not is_closed([status("a", "a"), status("b", "b")])
    assert not is_closed([status("a", "b"), status("b", "a", "a")])
    assert not is_closed([status("a", "b", "c"), status("b", "a", "c")])
    assert not is_closed([status("a", "b"), {}])
    assert not is_closed([status("a", "c"), status("b", "a")])
