"""Run a program in the background of tests, with its output in a log; it ends with the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually

PATIENCE_S = 60.0  # an API server is ready in 3 s on two idle cores; machines are shared
LAST_CHARACTERS = 4000  # of a log, in an error message


class Daemon:
    """A background `program` with flags; its log is <folder>/<its name>.log for all its runs.

    `within` is a command that runs it elsewhere, such as in a namespace, and that ends it when it is killed.
    """

    def __init__(self, program: str, flags: list[str], folder: Path, within: Sequence[str] = ()) -> None:
        self._command = [*within, program, *flags]
        self.folder = folder
        self.name = Path(program).name
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self, is_ready: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Return once the program is ready. Raises AssertionError with the end of its log."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with_parent, os.getpid()),
                start_new_session=True,
            )
        try:
            eventually(lambda: not self.runs or is_ready(), patience_s)
            assert self.runs, f"it ended with {self.process.returncode}"
        except AssertionError as error:
            self.end()
            raise AssertionError(f"{self.name}: {error}\n{self.log()[-LAST_CHARACTERS:]}") from error

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def end(self) -> None:
        """Kill the program in any state."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
