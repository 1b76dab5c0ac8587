"""`penstock`, and `python -m services.cli`: what has to be there before anything else is imported."""

from __future__ import annotations

import sys

from services.kit.startup import importing, prepare
from services.kit.startup_sigterm import end_at_once, ending_signals

SERVING = ("serve", "up", "sysv", "console")  # to end is what they are asked for, and no failure
TERMINATED = 143  # as in `exits`, which brings the store along


def main() -> None:
    """The entry point: ends the process with one of `Exit`."""
    is_service = bool(sys.argv[1:2]) and sys.argv[1] in SERVING
    if not is_service:
        end_at_once(TERMINATED)
    else:
        end_at_once(0, ending_signals())
    prepare(is_service=is_service)
    with importing():
        from services.cli.main import main as commands

    commands()


if __name__ == "__main__":
    main()
