"""A Python process that is told to end while it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.program import ROOT

END_S = 60.0
# in place of one that takes long
SLOW = """
import time
print("importing", flush=True)
time.sleep(60)
"""


def told_to_end_while(module: str, command: list[str], folder: Path) -> int:
    """Its status, if SIGTERM comes when it imports that module."""
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
