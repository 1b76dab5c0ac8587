"""Entry point of `penstock` and `python -m services.cli`: handle SIGTERM before the slow imports."""

from __future__ import annotations

import sys

from services.kit.startup import paused_gc, prepare_streams
from services.kit.startup_sigterm import exit_on_signals, stop_signals

SERVING = ("serve", "up", "sysv", "console")  # SIGTERM is their regular end, so they exit with 0
TERMINATED = 143  # Exit.TERMINATED; `exits` imports the store


def main() -> None:
    """Run the command and end the process with one of `Exit`."""
    is_service = bool(sys.argv[1:2]) and sys.argv[1] in SERVING
    if is_service:
        exit_on_signals(0, stop_signals())
    else:
        exit_on_signals(TERMINATED)
    prepare_streams(is_service=is_service)
    with paused_gc():
        from services.cli.main import main as commands

    commands()


if __name__ == "__main__":
    main()
