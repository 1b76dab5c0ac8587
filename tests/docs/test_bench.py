"""The folder in which a page is followed is as the project has it, whatever somebody has run there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.docs import bench


def test_what_a_reader_left_in_the_examples_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store's data, with its socket, which nothing can copy."""
    examples = tmp_path / "docs" / "examples" / "any"
    for name in ("penstock-data", "penstock-data-shop"):
        (examples / name).mkdir(parents=True)
        with monkeypatch.context() as there, socket.socket(socket.AF_UNIX) as store:
            there.chdir(examples / name)
            store.bind("store.sock")
    (examples / "shop.yaml").write_text("")
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    (tmp_path / "run").mkdir()
    made = bench.Bench(tmp_path / "run", "any")
    assert [path.name for path in made.folder.iterdir()] == ["shop.yaml"]
