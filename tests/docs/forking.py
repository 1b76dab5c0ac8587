"""`penstock` for a page's shell without a new interpreter each time: of what a page costs that would be nine tenths.

A server has imported the commands; for each call it forks a process, which gets the caller's words, folder, environment
and streams, and is the command from there on. What goes on until somebody ends it (`up`, `serve`, `sysv`, `console`) is
the program as everybody has it.
"""

from __future__ import annotations

import importlib
import marshal
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

from services.cli.main import MODULES
from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PROGRAM, be_a_command
from tests.servers import eventually
from tests.tmq.process import ROOT

LASTING = "up|serve|sysv|console"
STREAMS = 3
CALLER = Path(__file__).with_name("caller.py")
SCRIPT = """#!/bin/sh
case "$1" in {lasting}) exec {program} "$@" ;; esac
exec {python} -I -S {caller} {place} "$@"
"""


class Forking:
    """Within `with`, `program` may be put into a path."""

    def __init__(self, folder: Path) -> None:
        """folder: with a short name."""
        self._place = folder / "penstock.sock"
        words = {"lasting": LASTING, "program": " ".join(PROGRAM), "python": sys.executable}
        self.script = SCRIPT.format(caller=CALLER, place=self._place, **words)

    def start(self) -> Forking:
        """In the namespaces of whoever starts it."""
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.docs.forking", str(self._place)],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, preexec_fn=partial(die_with_parent, os.getpid()),
        )  # fmt: skip
        eventually(lambda: self._place.exists() or self._server.poll() is not None)
        assert self._server.poll() is None
        return self

    def end(self) -> None:
        self._server.kill()
        self._server.wait()


def serve(place: str) -> None:
    for module in MODULES.values():
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}~")
        listener.listen()
        os.rename(f"{place}~", place)
        while True:
            caller, _ = listener.accept()
            if not os.fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _answer(caller)
            caller.close()


def _answer(caller: socket.socket) -> None:
    status = 70
    try:
        size, streams, _, _ = socket.recv_fds(caller, 8, STREAMS)
        with caller.makefile("rb") as stream:
            arguments, folder, environment = marshal.loads(stream.read(int.from_bytes(size, "big")))
        status = be_a_command(arguments, Path(folder), environment, streams)
    finally:
        caller.sendall(bytes([status]))
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
