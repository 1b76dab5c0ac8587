"""An edge as a process of its own: `python -m services.tmq`, with time-outs short enough to see them expire."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from protos.tmq import Dialect
from tests.faults.plan import REPLY_TIMEOUT_S, REQUEST_TIMEOUT_S, SESSION_TIMEOUT_S
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
PR_SET_PDEATHSIG = 1
WAITS = {
    "patience_s": 1.0,
    "reply_timeout_s": REPLY_TIMEOUT_S,
    "session_timeout_s": SESSION_TIMEOUT_S,
    "heartbeat_s": 0.5,
    "sweep_s": 0.5,
    "upkeep_s": 2.0,
}


class EdgeServer:
    """One edge process on ports of its own. Each start writes a log of its own."""

    def __init__(self, index: int, directory: Path, store_url: str, call_deadline_s: float = 3.0) -> None:
        self.index = index
        self.ports = {dialect: free_port() for dialect in Dialect}
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._directory = directory
        self._config = directory / f"edge-{index}.yaml"
        directory.mkdir(parents=True, exist_ok=True)
        self._config.write_text(
            yaml.safe_dump(self._settings(store_url, WAITS | {"call_deadline_s": call_deadline_s}))
        )

    def _settings(self, store_url: str, waits: dict[str, float]) -> dict[str, Any]:
        return {
            "store": {"url": store_url},
            "health": {"port": 0},
            "drain": {"spread_s": 0.2, "timeout_s": 2.0},
            "edges": {
                "tmq": {
                    "listeners": {
                        dialect.value: {"port": port, "dialect": dialect.value}
                        for dialect, port in self.ports.items()
                    },
                    "transaction": {"time_limit_s": 10.0},
                    "request_timeout_s": REQUEST_TIMEOUT_S,
                    "store": waits,
                }
            },
        }

    def spawn(self) -> None:
        """Starts the process without waiting for it."""
        self.starts += 1
        with (self._directory / f"edge-{self.index}.{self.starts}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.tmq", "--config", str(self._config)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, "it was never started"
        return self.process

    def kill9(self) -> None:
        self.running.kill()
        self.running.wait()

    def stop(self) -> None:
        os.kill(self.running.pid, signal.SIGSTOP)

    def cont(self) -> None:
        os.kill(self.running.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM; the end is not waited for."""
        self.running.terminate()

    @property
    def has_ended(self) -> bool:
        return self.running.poll() is not None

    def end(self) -> None:
        if self.process is not None and not self.has_ended:
            self.kill9()

    def log(self) -> list[dict[str, Any]]:
        """Every event of every start; a line that is not JSON (a crash of the interpreter) is an error."""
        events: list[dict[str, Any]] = []
        for start in range(1, self.starts + 1):
            path = self._directory / f"edge-{self.index}.{start}.log"
            lines = path.read_text("utf-8", "replace").split("\n")
            events += [_event(line) for line in lines[:-1]]  # the last one is empty, or was cut by SIGKILL
        return events


def _event(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return {"level": "ERROR", "action": "not_json", "message": line, "at": 0.0}
    return found | {"at": datetime.fromisoformat(found["time"]).timestamp()}


def _die_with_parent() -> None:
    """Between fork and exec: however a test run ends, it leaves no edge behind, not even a stopped one."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
