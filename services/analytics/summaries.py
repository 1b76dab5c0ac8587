"""Read summaries of ended runs, each once, as an old output has thousands."""

from __future__ import annotations

from typing import Any

from services.analytics.files import Files
from services.analytics.places import OutputError
from services.analytics.publish import done_file
from services.outside.document import read_json


class Summaries:
    """The summaries of an output. Every method raises OutputError."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, bytes] = {}  # by run

    def octets(self, run: str) -> bytes | None:
        """Return the content of a summary, or None if the run has not ended."""
        if run not in self._known:
            found = self._files.octets_if_there(done_file(run))
            if found is None:
                return None
            self._known[run] = found
        return self._known[run]

    def of(self, run: str) -> Any:
        """Return a summary, or None if the run has not ended."""
        octets = self.octets(run)
        try:
            return None if octets is None else read_json(octets)
        except ValueError as error:
            raise OutputError(f"{self._files.uri(done_file(run))} is not JSON: {error}") from None
