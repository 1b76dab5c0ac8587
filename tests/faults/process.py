"""An edge in its own process, `python -m services.<name>`, that tests kill, stop and restart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from services.system.pdeathsig import die_with_parent
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
LOCAL = "127.0.0.1"


class EdgeProcess:
    """An edge process. Its ports stay the same across restarts; each start writes its own log."""

    def __init__(
        self,
        name: str,
        directory: Path,
        store_url: str,
        edge: str,
        settings: dict[str, Any],
        host: str = LOCAL,
    ) -> None:
        """Write the configuration of `edge`, with `settings` under `edges.<edge>`; `host` serves its health pages."""
        self.name = name
        self.host = host
        self.health_port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._module = f"services.{edge}"
        self._directory = directory
        self._config = directory / f"{name}.yaml"
        directory.mkdir(parents=True, exist_ok=True)
        fields = {
            "store": {"url": store_url},
            "health": {"host": host, "port": self.health_port},
            "drain": {"spread_s": 0.2, "timeout_s": 2.0},
            "edges": {edge: settings},
        }
        self._config.write_text(yaml.safe_dump(fields))

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self.starts += 1
        with self._log(self.starts).open("wb") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with_parent, os.getpid()),
                start_new_session=True,
            )

    def command(self) -> list[str]:
        return [sys.executable, "-m", self._module, "--config", str(self._config)]

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
        """Send SIGTERM without waiting for the end."""
        self.running.terminate()

    @property
    def has_ended(self) -> bool:
        return self.running.poll() is not None

    def end(self) -> None:
        if self.process is not None and not self.has_ended:
            self.kill9()

    # health pages and logs; call these outside the event loop, as they block

    def is_ready(self) -> bool:
        return self.page("/readyz") is not None

    def sample(self, name: str) -> float:
        """Return the sum of a metric's samples, or 0 if the edge does not answer."""
        lines = (self.page("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{"))

    def page(self, path: str) -> str | None:
        """Return a health page, or None if the edge does not answer or answers with an error."""
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.health_port}{path}", timeout=1.0) as page:
                return str(page.read().decode())
        except (OSError, urllib.error.URLError):
            return None

    def log(self) -> list[dict[str, Any]]:
        """Return the log events of all starts; a line that is not JSON (an interpreter crash) is an error."""
        events: list[dict[str, Any]] = []
        for start in range(1, self.starts + 1):
            lines = self._log(start).read_text("utf-8", "replace").split("\n")
            # the last line is empty, or was cut off by SIGKILL
            events += [_event(line) for line in lines[:-1]]
        return events

    def complaints(self, but: Collection[str] = ()) -> list[str]:
        """Return logged errors, which no run may cause, except the actions in `but`, which are checked elsewhere."""
        bad = [event for event in self.log() if event["level"] in ("ERROR", "CRITICAL")]
        bad = [event for event in bad if event.get("action") not in but]
        return [f"{self.name}: {str(event)[:2000]}" for event in bad]

    def _log(self, start: int) -> Path:
        return self._directory / f"{self.name}.{start}.log"


def _event(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return {"level": "ERROR", "action": "not_json", "message": line, "at": 0.0}
    return found | {"at": datetime.fromisoformat(found["time"]).timestamp()}
