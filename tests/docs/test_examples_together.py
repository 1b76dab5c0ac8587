"""Check that example files that run side by side on one machine share no address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ANY_PORT, Shell
from tests.tmq.process import ROOT

TOGETHER = [
    ("pubsub", ("ring-a", "ring-b", "ring-c")),
    ("pubsub", ("tls-east", "tls-west")),
    ("rqp", ("east", "west")),
    ("rqp", ("shop", "depot")),
    ("ring", ("shop", "depot")),
]


def places(file: Path, tmp_path: Path) -> set[tuple[str, int]]:
    """Return every address that `penstock up --config file` listens on."""
    shell = Shell(tmp_path)
    for name in ANY_PORT:
        del shell.environment[name]
    settings = json.loads(shell.run("config", "--json", "--config", str(file)).out)["settings"]
    if "ring" not in settings["edges"]["ring"]["listeners"]:
        del settings["edges"]["ring"]["node"]  # no node is started
    # port of the first edge's pages; the other edges use the ports after it
    first = settings["health"]["port"]
    found = {(settings["health"]["host"], first + number) for number in range(len(settings["edges"]))}
    return found | set(ports(settings["edges"]))


def ports(section: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from ports(value)
        elif name.endswith(("port", "ports")) and value:
            low, _, high = str(value).partition("-")
            host = section.get(f"{name.rpartition('_')[0]}_host") or section["host"]
            for port in range(int(low), int(high or low) + 1):
                yield host, port


@pytest.mark.parametrize(("folder", "files"), TOGETHER)
def test_examples_started_together_share_no_address(
    folder: str, files: tuple[str, ...], tmp_path: Path
) -> None:
    """Check that examples that are started together share no address (pubsub.md, rqp-mca.md, rqp-cast.md, ring.md)."""
    all_of_them = {
        name: places(ROOT / "docs" / "examples" / folder / f"{name}.yaml", tmp_path) for name in files
    }
    for one, other in combinations(files, 2):
        assert not all_of_them[one] & all_of_them[other], (one, other)
        assert len(all_of_them[one]) > 70  # the edges with all their ports
