"""Run `penstock` for a page's shell without a new interpreter, which would take nine tenths of a page's time.

One server for all pages has imported the commands. For each call it forks a process, which takes over the caller's
arguments, folder, environment, streams, network and local queues, and runs the command. Commands that run until they
are stopped (`up`, `serve`, `sysv`, `console`) use the installed program.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import marshal
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

from services.cli.main import MODULES
from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PROGRAM, be_a_command
from tests.servers import eventually
from tests.tmq.process import ROOT

_libc = ctypes.CDLL(None, use_errno=True)
LASTING = "up|serve|sysv|console"
STREAMS = 3
CALLER = Path(__file__).with_name("caller.py")
SCRIPT = """#!/bin/sh
case "$1" in {lasting}) exec {program} "$@" ;; esac
exec {python} -I -S {caller} {place} "$@"
"""


_servers: list[subprocess.Popen[bytes]] = []  # kept as long as this process runs


@cache
def script() -> str:
    """Return the program to put in the path as `penstock`. Its server is started once and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="p"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / "penstock.sock"
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.docs.forking", str(place)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, preexec_fn=partial(die_with_parent, os.getpid()),
    )  # fmt: skip
    eventually(lambda: place.exists() or server.poll() is not None)
    assert server.poll() is None
    _servers.append(server)
    words = {"lasting": LASTING, "program": " ".join(PROGRAM), "python": sys.executable}
    return SCRIPT.format(caller=CALLER, place=place, **words)


def serve(place: str) -> None:
    for module in MODULES.values():
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped automatically
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
        _enter_namespaces_of(caller)
        size, streams, _, _ = socket.recv_fds(caller, 8, STREAMS)
        with caller.makefile("rb") as stream:
            arguments, folder, environment = marshal.loads(stream.read(int.from_bytes(size, "big")))
        status = be_a_command(arguments, Path(folder), environment, streams)
    finally:
        caller.sendall(bytes([status]))
        os._exit(0)


def _enter_namespaces_of(caller: socket.socket) -> None:
    """Use the network and the local queues of the process at the other end."""
    pid, _, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    for kind in ("net", "ipc"):
        its = f"/proc/{pid}/ns/{kind}"
        if os.readlink(its) != os.readlink(f"/proc/self/ns/{kind}"):
            fd = os.open(its, os.O_RDONLY)
            if _libc.setns(fd, 0):
                raise OSError(ctypes.get_errno(), "setns")
            os.close(fd)


if __name__ == "__main__":
    serve(sys.argv[1])
