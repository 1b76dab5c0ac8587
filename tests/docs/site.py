"""Build the documentation site as `make docs` does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tools.site.places import ROOT

MOST_S = 60.0


def built(folder: Path) -> Path:
    """Build the site into an empty folder without warnings, and print how long that took."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=4 * MOST_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(f"built in {time.monotonic() - began:.1f} s; it should take less than {MOST_S:.0f}")
    return folder
