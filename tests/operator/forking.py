"""Operators without a new interpreter each: a server has imported what they need, and forks one for each that asks.

It is `python -m penstock_operator` from there on: its environment, its folder and its log are its own. That the command
itself starts it is tested in test_early_end.py, and by the images.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent

ROOT = Path(__file__).parents[2]
NUMBER = 4  # octets of one that is sent


class Forked:
    """A child of somebody else; as much of subprocess.Popen as is needed."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self._status: int | None = None
        self.pid = self._number()

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("penstock_operator", timeout or 0.0)
        return status

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, patience_s: float | None) -> int | None:
        if self._status is None:
            self._told.settimeout(patience_s)
            try:
                self._status = self._number()
                self._told.close()
            except (BlockingIOError, TimeoutError):
                return None
        return self._status

    def _number(self) -> int:
        octets = self._told.recv(NUMBER, socket.MSG_WAITALL)
        assert len(octets) == NUMBER, "the server of operators has ended"
        return int.from_bytes(octets, "big", signed=True)


def forked(environment: Mapping[str, str], log: Path, *words: str) -> Forked:
    """Writes its standard error behind what is in the log, and works in the folder of that."""
    ours, theirs = socket.socketpair()
    told = marshal.dumps((dict(environment), str(log), list(words)))
    with theirs, log.open("ab") as err:
        socket.send_fds(_server()[0], [len(told).to_bytes(NUMBER, "big")], [theirs.fileno(), err.fileno()])
    ours.sendall(told)
    return Forked(ours)


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """One for this process, which it dies with."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.operator.forking", str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"},
            pass_fds=[theirs.fileno()],
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    return ours, process


# the server -------------------------------------------------------------------------------------------------------


def serve(place: int) -> None:
    from penstock_operator import run, uninstall  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that mind operators
    asked = socket.socket(fileno=place)
    server = os.getpid()
    while True:
        size, given, _, _ = socket.recv_fds(asked, NUMBER, 2)
        if not size:
            return
        told, err = given
        if not os.fork():
            asked.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(server)
            _mind(socket.socket(fileno=told), int.from_bytes(size, "big"), err)
            os._exit(0)
        os.close(told)
        os.close(err)


def _mind(told: socket.socket, size: int, err: int) -> None:
    """Tells the operator's number, and how it ended."""
    environment, log, words = marshal.loads(told.recv(size, socket.MSG_WAITALL))
    minder = os.getpid()
    child = os.fork()
    if not child:
        told.close()
        status = 1
        try:
            die_with_parent(minder)
            status = _be_an_operator(environment, Path(log).parent, err, words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except BaseException:  # noqa: BLE001 - told as an interpreter tells it
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    told.sendall(child.to_bytes(NUMBER, "big"))
    _, status = os.waitpid(child, 0)
    told.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER, "big", signed=True))


def _be_an_operator(environment: Mapping[str, str], folder: Path, err: int, words: list[str]) -> int:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(err, 2)
    os.close(err)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    from penstock_operator.__main__ import main

    try:
        return main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
