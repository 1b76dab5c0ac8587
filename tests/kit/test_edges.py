"""Test the discovery of edges."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import services
from services.kit.edge import Edge, edges


def test_edges_are_found_by_name() -> None:
    for name, edge in edges().items():
        assert isinstance(edge, Edge)
        assert edge.name == name


def test_new_edge_needs_no_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fifth"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "edge.py").write_text(
        "from services.kit.edge import Edge, EdgeSettings\n"
        "EDGE = Edge('fifth', EdgeSettings, start=None, example=lambda settings: ['nc localhost 5555'])\n"
    )
    monkeypatch.setattr(services, "__path__", [*services.__path__, str(tmp_path)])
    found = edges()
    assert found["fifth"].example(None) == ["nc localhost 5555"]
    assert "kit" not in found
    for module in ("services.fifth.edge", "services.fifth"):
        sys.modules.pop(module)
    delattr(services, "fifth")
