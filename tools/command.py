"""Run an external command; report a failure in one line."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from tools.cache import NotBuilt

LAST_LINES = 3  # of the error output, for the message


def run(name: str, command: Sequence[str], timeout_s: float, **how: Any) -> str:
    """Run the command and return its standard output. Raises NotBuilt."""
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, **how
        )
    except FileNotFoundError as error:
        raise NotBuilt(f"{name}: there is no {command[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"{name} took more than {timeout_s:.0f} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()[-LAST_LINES:]
        raise NotBuilt(f"{name}: {'; '.join(lines) or done.returncode}")
    return done.stdout
