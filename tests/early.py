"""Run a Python process that gets SIGTERM during an import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.program import ROOT

END_S = 60.0
# replaces a module that is slow to import
SLOW = """
import time
print("importing", flush=True)
time.sleep(60)
"""


def sigterm_during_import(module: str, command: list[str], folder: Path) -> int:
    """Return the exit status of a process that gets SIGTERM while it imports the module."""
    (folder / f"{module}.py").write_text(SLOW)
    path = ":".join(map(str, (folder, ROOT, ROOT / "operator")))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", *command]
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == b"importing\n"
            process.terminate()
            return process.wait(END_S)
        finally:
            process.kill()
