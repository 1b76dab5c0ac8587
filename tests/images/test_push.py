"""Test the command of README.md, "On Kubernetes", that builds the images and pushes them to a registry."""

from __future__ import annotations

import subprocess

from tests.images.registry import building, registry, tags
from tests.program import ROOT
from tools.images.build import targets, version

__all__ = ["building", "registry"]

EXAMPLE = "registry.example/team"


def test_readme_command_builds_and_pushes(registry: str, building: dict[str, str]) -> None:
    lines = [line.removeprefix("$ ") for line in (ROOT / "README.md").read_text().splitlines()]
    (line,) = [line for line in lines if line.startswith("make images ")]
    assert EXAMPLE in line
    command = line.replace(EXAMPLE, f"{registry}/team")
    subprocess.run(command, shell=True, cwd=ROOT, env=building, check=True)
    pushed = line.partition('TARGETS="')[2].partition('"')[0].split()
    assert pushed
    assert set(pushed) < set(targets())
    for target in pushed:
        assert tags(registry, f"team/penstock-{target}") == [version()]
