"""Find nats-server in the required version, which system packages lack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.process import NotRun, find_program
from tools.cache import Kept, NotBuilt, keep, not_there
from tools.go import find_go, run_go

NATS_VERSION = "2.15.2"
NATS_MODULE = f"github.com/nats-io/nats-server/v2@v{NATS_VERSION}"
NATS = Kept("nats-server", NATS_VERSION, "nats-server")


def find_nats_server() -> str:
    """Return nats-server in the required version, built with Go if necessary; else the system's. Raises NotRun."""
    try:
        if not_there([NATS]):
            keep([NATS], partial(_install, find_go()))
    except NotBuilt as error:
        if system := find_program("nats-server"):
            return system
        raise NotRun(f"{NATS} cannot be had: {error}; nor is Debian's nats-server installed") from error
    return str(NATS.program)


def _install(go: str, place: Path, missing: Sequence[Kept]) -> None:
    run_go(go, ["install", NATS_MODULE], GOBIN=str(place / NATS.folder))
