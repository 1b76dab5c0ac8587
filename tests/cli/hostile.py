"""Run commands as a nameless user id in ASCII with closed standard streams, without starting interpreters.

A server imports what commands need and forks a process for each. From the first line of `services.cli.__main__` to the
end of the interpreter this equals `python -m services.cli`: user id, environment, streams as Python creates them, no
other open file. test_startup.py runs a few commands in new interpreters to check that.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import io
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryFile

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import PATIENCE_S, Shell
from tests.forked import NUMBER, Forked

ROOT = Path(__file__).parents[2]
UID = 123_456
NAMES = ("USER", "LOGNAME", "LNAME", "USERNAME", "HOME")  # variables with the name of the user
CLONE_NEWUSER = 0x1000_0000
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def environment_of(shell: Shell) -> dict[str, str]:
    kept = {name: value for name, value in shell.environment.items() if name not in NAMES}
    return {**kept, "PYTHONIOENCODING": "ascii"}


class Hostile:
    """A running command."""

    def __init__(self, shell: Shell, words: Sequence[str], closed: Collection[int] = ()) -> None:
        """Start a command with these standard streams closed, by number. An open standard input is empty."""
        self._out, self._err = TemporaryFile(), TemporaryFile()  # noqa: SIM115
        values = (list(words), environment_of(shell), str(shell.folder), list(closed))
        request = marshal.dumps(values)
        ours, theirs = socket.socketpair()
        with theirs, open(os.devnull, "rb") as given:
            streams = [theirs.fileno(), given.fileno(), self._out.fileno(), self._err.fileno()]
            socket.send_fds(_server()[0], [len(request).to_bytes(NUMBER, "big")], streams)
        ours.sendall(request)
        self.process = Forked(ours)

    def end(self) -> tuple[int, bytes, bytes]:
        """Wait for the end; return the status and both outputs."""
        status = self.process.wait(PATIENCE_S)
        found = []
        for file in (self._out, self._err):
            file.seek(0)
            found.append(file.read())
            file.close()
        return status, found[0], found[1]


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Return the server of this process, which stops with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.cli.hostile", str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=[theirs.fileno()],
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    return ours, process


# The server


def serve(place: int) -> None:
    """Run until the tests end. A child never returns: a command ends with SystemExit, as in its own interpreter."""
    from services.cli.main import MODULES

    for module in (
        *MODULES.values(),
        "services.cli.framework.serving",
        "services.console.process",
        "services.sysv.process",
    ):
        importlib.import_module(module)
    asked, server = socket.socket(fileno=place), os.getpid()
    gc.freeze()
    while True:
        size, given, _, _ = socket.recv_fds(asked, NUMBER, 4)
        if not size:
            return
        if not os.fork():
            die_with_parent(server)
            _mind(socket.socket(fileno=given[0]), int.from_bytes(size, "big"), given[1:])
        for number in given:
            os.close(number)
        while _has_ended():
            pass


def _has_ended() -> bool:
    """Return whether a child that is gone now had ended."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _mind(connection: socket.socket, size: int, streams: list[int]) -> None:
    """Report the command's number and its end."""
    words, environment, folder, closed = marshal.loads(connection.recv(size, socket.MSG_WAITALL))
    minder = os.getpid()
    child = os.fork()
    if not child:
        die_with_parent(minder)
        _become(environment, folder, streams, closed)
        _run(words)
    for number in streams:
        os.close(number)
    connection.sendall(child.to_bytes(NUMBER, "big"))
    _, status = os.waitpid(child, 0)
    connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER, "big", signed=True))
    os._exit(0)


def _become(environment: dict[str, str], folder: str, streams: list[int], closed: list[int]) -> None:
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{UID} {group} 1")
    Path("/proc/self/uid_map").write_text(f"{UID} {user} 1")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in closed:
        os.close(number)
    for number, (name, mode) in enumerate(STREAMS):
        stream = None if number in closed else _stream(number, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


def _stream(number: int, mode: str) -> io.TextIOWrapper:
    """Return a stream as Python creates it with PYTHONIOENCODING=ascii."""
    errors = "backslashreplace" if number == 2 else "strict"
    file = open(number, mode, encoding="ascii", errors=errors, closefd=False)  # noqa: SIM115
    assert isinstance(file, io.TextIOWrapper)
    return file


def _run(words: list[str]) -> None:
    sys.argv = ["penstock", *words]
    from services.cli.__main__ import main

    main()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
