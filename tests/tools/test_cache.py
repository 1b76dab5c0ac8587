"""Test that cached programs are complete, despite concurrent and failed builds."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.cache import UNFINISHED, Kept, NotBuilt, cache_folder, keep

ROOT = Path(__file__).parents[2]
LEVER, WHEEL = Kept("lever", "1.2", "bin/lever"), Kept("wheel", "3", "wheel")

# Reports the build, then waits for the end of its input before it completes the program.
SLOW = """
import sys
from tools.cache import Kept, keep

def build(place, missing):
    (place / "lever-1.2" / "bin").mkdir(parents=True)
    (place / "lever-1.2" / "bin" / "lever").write_text("half")
    print("builds", flush=True)
    sys.stdin.read()
    (place / "lever-1.2" / "bin" / "lever").write_text("whole")

keep([Kept("lever", "1.2", "bin/lever")], build)
print("kept", flush=True)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(place: Path, missing: Sequence[Kept]) -> None:
    for each in missing:
        (place / each.folder / each.entry).parent.mkdir(parents=True)
        (place / each.folder / each.entry).write_text(f"made {each}")


def never(place: Path, missing: Sequence[Kept]) -> None:
    raise AssertionError(f"nothing had to be built, least of all {missing}")


def unfinished(cache: Path) -> list[Path]:
    return list(cache.glob(f"{UNFINISHED}*"))


def builder() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", SLOW], cwd=ROOT, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("PENSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert cache_folder() == Path("/var/cache/penstock/tools")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "penstock" / "tools"


def test_only_missing_programs_are_built_and_only_once(cache: Path) -> None:
    keep([WHEEL], make)
    asked: list[Kept] = []

    def build(place: Path, missing: Sequence[Kept]) -> None:
        asked.extend(missing)
        make(place, missing)

    keep([LEVER, WHEEL], build)
    assert asked == [LEVER]
    keep([LEVER, WHEEL], never)
    assert (cache / "lever-1.2" / "bin" / "lever").read_text() == "made lever 1.2"
    assert unfinished(cache) == []


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def fail(place: Path, missing: Sequence[Kept]) -> None:
        make(place, missing)
        raise NotBuilt("no network")

    with pytest.raises(NotBuilt, match="no network"):
        keep([LEVER], fail)
    assert not LEVER.program.exists()
    assert unfinished(cache) == []


def test_two_builds_at_once_are_one() -> None:
    first = builder()
    assert first_line(first) == "builds"
    second = builder()
    assert second.stderr is not None
    assert "another build of tools is running" in second.stderr.readline()
    assert not LEVER.program.exists()
    assert first.communicate("") == ("kept\n", "")
    assert LEVER.program.read_text() == "whole"
    assert second.communicate("") == ("kept\n", "")


def test_leftovers_of_a_killed_build_are_removed(cache: Path) -> None:
    killed = builder()
    assert first_line(killed) == "builds"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not LEVER.program.exists()
    assert len(unfinished(cache)) == 1
    keep([LEVER], make)
    assert LEVER.program.read_text() == "made lever 1.2"
    assert unfinished(cache) == []
