"""`penstock`, and `python -m services.cli`: what has to be there before anything else is imported."""

from __future__ import annotations

import sys

from services.kit.startup import paused_gc, prepare_streams
from services.kit.startup_sigterm import exit_on_signals, stop_signals

SERVING = ("serve", "up", "sysv", "console")  # to end is what they are asked for, and no failure
TERMINATED = 143  # as in `exits`, which brings the store along


def main() -> None:
    """The entry point: ends the process with one of `Exit`."""
    is_service = bool(sys.argv[1:2]) and sys.argv[1] in SERVING
    if not is_service:
        exit_on_signals(TERMINATED)
    else:
        exit_on_signals(0, stop_signals())
    prepare_streams(is_service=is_service)
    with paused_gc():
        from services.cli.main import main as commands

    commands()


if __name__ == "__main__":
    main()
