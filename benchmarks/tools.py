"""Programs that no package of the system has in the version wanted: kept in a cache outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.process import NotRun, find_program

NATS_VERSION = "2.15.2"
NATS_MODULE = f"github.com/nats-io/nats-server/v2@v{NATS_VERSION}"
BUILD_TIMEOUT_S = 900


def tools_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "penstock" / "tools"


def find_go() -> str | None:
    return find_program("go", "/usr/local/go/bin/go")


def find_nats_server() -> str:
    """nats-server of the version wanted, built by Go if need be; else the system's. Raises NotRun."""
    program = tools_folder() / f"nats-server-{NATS_VERSION}" / "nats-server"
    if program.exists():
        return str(program)
    reason = _install(program.parent)
    if reason is None:
        return str(program)
    if system := find_program("nats-server"):
        return system
    raise NotRun(f"nats-server {NATS_VERSION} cannot be had: {reason}; nor is Debian's nats-server installed")


def _install(folder: Path) -> str | None:
    """`go install` into `folder`; the reason why not, or None."""
    go = find_go()
    if go is None:
        return "no Go compiler"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        built = subprocess.run(
            [go, "install", NATS_MODULE],
            env={**os.environ, "GOBIN": str(folder)},
            capture_output=True,
            timeout=BUILD_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"go install took more than {BUILD_TIMEOUT_S} s"
    if built.returncode == 0:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    lines = built.stderr.decode(errors="replace").strip().splitlines()
    return f"go install: {lines[-1] if lines else built.returncode}"
