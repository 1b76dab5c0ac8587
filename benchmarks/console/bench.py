"""The context that each part of the benchmark is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from benchmarks.peers.redis import Store
from benchmarks.process import Daemon, Workshop, free_port
from tests.console.local import keep


@dataclass(frozen=True, slots=True)
class Bench:
    store: Store
    console: Daemon
    base: str  # URL of the API
    queues: int
    dead: int
    asked: int  # requests of each kind
    seconds: float  # how long the live view is watched
    say: Callable[[str], None]


def start(place: Workshop, store: str, name: str = "console") -> tuple[Daemon, str]:
    """Start a console on the store of this URL, and return it with the URL of its API."""
    port = free_port()
    settings = ("--set", f"console.port={port}", "--set", "health.port=0")
    data = str(keep(place.subfolder("console-data")))
    environment = {
        "PENSTOCK_STORE__URL": store,
        "PENSTOCK_STORE__DATA_DIR": data,
        "PYTHONPATH": str(Path.cwd()),
    }
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "services.console", *settings]
    daemon = place.start(name, command, lambda: urlopen(f"{base}/readyz").close(), environment)
    return daemon, f"{base}/api/v1"
