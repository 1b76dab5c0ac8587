"""SIGTERM while a process starts: before there is anything to drain, and anybody who would.

The kernel gives the first process of a container no signal that it does not handle: one that comes while Python imports
what it needs would be lost for good, and whoever sent it waits until he kills. Imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal


def end_at_sigterm(status: int) -> None:
    """From now on, until something else handles it: the process ends with that status, at once."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(status))
