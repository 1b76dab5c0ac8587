"""Run the operator; with `uninstall`, prepare the removal of its Helm release."""

from __future__ import annotations

import argparse
import sys

from services.kit.startup import paused_gc, prepare_streams
from services.kit.startup_sigterm import exit_on_signals, stop_signals

EXIT_FAILED = 1
EXIT_UNUSABLE = 2


def main(words: list[str]) -> int:
    """Run the operator and return the exit status."""
    if "uninstall" not in words:  # `uninstall` ignores signals: resources that it leaves behind would hang
        exit_on_signals(0, stop_signals())
    prepare_streams()
    return _run(words)


def _run(words: list[str]) -> int:
    """Import and run the rest; the imports take up to several seconds on a busy machine."""
    with paused_gc():
        import asyncio

        from penstock_operator import uninstall
        from penstock_operator.cluster.api import ApiError
        from penstock_operator.kopf_handlers import WatchesEnded
        from penstock_operator.run import run
        from penstock_operator.settings import SettingsError, load
        from services.kit import logs
        from services.kit.config import LogSettings
        from services.kit.config import SettingsError as KitSettingsError

    parser = argparse.ArgumentParser(prog="penstock_operator", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    uninstall.add_arguments(commands.add_parser("uninstall", help=uninstall.__doc__))
    arguments = parser.parse_args(words)
    try:
        settings = load()
        logs.configure(LogSettings(level=settings.log_level, format=settings.log_format))
        work = uninstall.run(arguments) if arguments.command == "uninstall" else run(settings)
        # not uvloop: after a failed handshake it mistakes a new connection for one that aiohttp has closed
        asyncio.run(work)
    except ApiError as error:
        print(f"penstock: the API server refused: {error}", file=sys.stderr)
        return EXIT_FAILED
    except WatchesEnded as error:
        print(f"penstock: {error}", file=sys.stderr)
        return EXIT_FAILED
    except (SettingsError, KitSettingsError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
