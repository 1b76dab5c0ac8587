"""Run `penstock sysv` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually

PROGRAM = [sys.executable, "-P", "-m", "services.cli.main", "sysv"]
PATIENCE_S = 60.0


class BridgeProgram:
    """A bridge process, whose journals and log are in `folder`."""

    def __init__(self, url: str, folder: Path, *options: str, wrapper: Sequence[str] = ()) -> None:
        """Start the process; `wrapper` is a command that runs another one."""
        self._log = folder / f"bridge-{id(self):x}.log"
        foreign = ("PENSTOCK_", "REDIS_URL")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, *PROGRAM, "--store", url, "--set", "health.port=0", *options],
                cwd=folder,
                env=clean,
                stderr=log,
                stdout=log,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )

    @property
    def text(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def events(self, action: str) -> list[dict[str, Any]]:
        whole = [line for line in self.text.splitlines(keepends=True) if line.endswith("}\n")]
        return [line for line in map(json.loads, whole) if line.get("action") == action]

    def started(self) -> BridgeProgram:
        """Return once the mappings run."""
        eventually(lambda: self.events("sysv_started") or self.process.poll() is not None, PATIENCE_S)
        assert self.process.poll() is None, self.text
        return self

    def kill9(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Send SIGTERM, and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)
