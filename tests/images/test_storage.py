"""Test leftovers of builds in buildah's storage, and their removal (CONTRIBUTING.md, End to end)."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.images import PREFIX, TREE, forget_trees, prefix
from tests.program import ROOT
from tests.servers import eventually
from tools.images.build import Image, build, tag_as
from tools.images.storage import buildah, remove_old

SLOW = """
FROM {base} AS first
RUN sleep 60
"""
SMALL = """
FROM {base}
LABEL dev.penstock.test.mark=small
"""
BUILD = """
import sys
from pathlib import Path
from tools.images.build import Image, build

build(Image(sys.argv[1], Path(sys.argv[2])), "buildah")
"""


@pytest.fixture
def name() -> Iterator[str]:
    """Yield the name of an image that is removed after the test."""
    name = f"{PREFIX}penstock-test-{secrets.token_hex(4)}:1"
    yield name
    for image in buildah("images", "--quiet", "--filter", f"reference={name}").split():
        buildah("rmi", image)


@contextmanager
def build_that_goes_on(folder: Path, base: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process of a running build, in a group of its own, with a working container."""
    before = working()
    (folder / "Dockerfile").write_text(SLOW.format(base=base))
    command = [sys.executable, "-c", BUILD, name, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            eventually(lambda: working() - before)
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has ended with all its children
                os.killpg(process.pid, signal.SIGKILL)


def working() -> set[str]:
    return {each["id"] for each in json.loads(buildah("containers", "--json") or "null") or ()}


def test_a_build_that_is_interrupted_leaves_no_container(tmp_path: Path, base: str, name: str) -> None:
    before = working()
    with build_that_goes_on(tmp_path, base, name) as process:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        assert working() <= before


def test_next_build_removes_leftovers_of_a_killed_build(tmp_path: Path, base: str, name: str) -> None:
    before = working()
    with build_that_goes_on(tmp_path, base, name) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    left = working() - before
    assert left
    (tmp_path / "Dockerfile").write_text(SMALL.format(base=base))
    build(Image(name, tmp_path), "buildah")
    assert not left & working()


def test_a_build_that_lives_keeps_its_container(tmp_path: Path, base: str, name: str) -> None:
    before = working()
    with build_that_goes_on(tmp_path, base, f"{name}-slow"):
        mine = working() - before
        (tmp_path / "Dockerfile").write_text(SMALL.format(base=base))
        build(Image(name, tmp_path), "buildah")
        assert mine <= working()


def test_images_that_lost_their_name_are_removed_once_they_are_old(
    tmp_path: Path, base: str, name: str
) -> None:
    label = f"dev.penstock.test.mark={secrets.token_hex(4)}"
    for number in (1, 2):
        (tmp_path / "Dockerfile").write_text(f"FROM {base}\nLABEL {label} number={number}\n")
        build(Image(name, tmp_path), "buildah")
    assert len(marked(label)) == 2
    remove_old(f"label={label}")
    assert len(marked(label)) == 2  # it may still be used
    remove_old(f"label={label}", kept_s=-1)
    (left,) = marked(label)
    assert left == buildah("images", "--quiet", name).strip()


def test_images_of_a_tree_that_is_gone_go(tmp_path: Path, base: str) -> None:
    names = [f"{prefix(tree)}penstock-test:1" for tree in ("11111111", "22222222")]
    for name in names:
        tag_as(base, name)
    records = tmp_path / "trees"
    records.mkdir()
    (records / "11111111").write_text(str(tmp_path / "gone"))
    (records / "22222222").write_text(str(tmp_path))
    try:
        forget_trees(records)
        there = buildah("images", "--format", "{{.Name}}:{{.Tag}}").split()
        assert [name in there for name in names] == [False, True]
        assert {path.name for path in records.iterdir()} == {"22222222", TREE}
    finally:
        buildah("rmi", names[1])


def marked(label: str) -> list[str]:
    return buildah("images", "--quiet", "--filter", f"label={label}").split()
