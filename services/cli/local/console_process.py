"""The console as a child process of `penstock up`: it lives as edges do."""

from __future__ import annotations

import sys
from pathlib import Path

from services.cli.local.edge_process import EdgeProcess
from services.console.access import local_token
from services.kit.session import Peer


class ConsoleProcess(EdgeProcess):
    """`penstock console` with these arguments."""

    @property
    def url(self) -> str:
        """Once it has said where it listens."""
        place, scheme = next(iter(self.places.values())), "https" if self.is_tls else "http"
        return f"{scheme}://{Peer(*place)}/"

    is_tls = False
    token: Path | None = None  # file of its own token, where nothing is set up

    def _words(self) -> list[str]:
        return ["console"]


def address(url: str, token: Path | None) -> str:
    """Return the address of the console, with the way to its token, as `up` and `console` print it."""
    return url if token is None else local_token.shown(url, token, at_terminal=sys.stdout.isatty())
