"""Run the command line as people and programs do: real processes in their own folder."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import importlib
import json
import logging
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from services.cli.main import MODULES, run
from services.cli.terminal.exits import Exit
from services.kit.edge import edges
from services.kit.startup_sigterm import exit_on_signals
from services.store import Store
from tests.servers import eventually

T = TypeVar("T")

PROGRAM = [sys.executable, "-P", "-m", "services.cli"]
PATIENCE_S = 60.0
NO_CONSOLE = ("--set", "console.enabled=false")  # for a faster `up`
ANY_PORT = {
    "PENSTOCK_HEALTH__PORT": "0",
    "PENSTOCK_EDGES__TMQ__LISTENERS__DOCUMENT__PORT": "0",
    "PENSTOCK_EDGES__TMQ__LISTENERS__REFERENCE__PORT": "0",
    "PENSTOCK_EDGES__PUBSUB__LISTENERS__TEXT__PORT": "0",
    "PENSTOCK_EDGES__PUBSUB__LISTENERS__LINK__PORT": "0",
    "PENSTOCK_EDGES__RING__LISTENERS__CLIENTS__PORT": "0",
    "PENSTOCK_EDGES__RING__LISTENERS__RING__PORT": "0",
    "PENSTOCK_EDGES__RQP__LISTENERS__MCA__PORT": "0",
    "PENSTOCK_EDGES__RQP__CAST__REQUEST_PORT": "0",
    "PENSTOCK_EDGES__RQP__CAST__FINDRECEIVER_PORT": "0",
    "PENSTOCK_EDGES__RING__NODE__BEACON_PORT": "0",
    "PENSTOCK_CONSOLE__PORT": "0",
}


SERVICES = ("up", "serve", "sysv", "console")  # run until a signal


def forked(
    arguments: Sequence[str | bytes],
    folder: Path,
    environment: Mapping[str, str],
    at_start: Callable[[], None] = lambda: None,
    **streams: Any,
) -> subprocess.Popen[bytes]:
    """Start a command in a process forked from this one, in a tenth of the time of a new interpreter."""
    _import_commands()
    before = set(os.listdir("/proc/self/fd"))

    def become() -> None:
        # waits for one of the children until a program is there
        for fd in set(os.listdir("/proc/self/fd")) - before:
            with suppress(OSError):
                os.close(int(fd))
        status = 99
        try:
            at_start()
            status = be_a_command(arguments, folder, environment, [0, 1, 2])
        finally:
            os._exit(status)

    return subprocess.Popen(
        ["penstock"], preexec_fn=become, start_new_session=True, restore_signals=False, **streams
    )


@cache
def _import_commands() -> None:
    """Import all commands once, and not in each child."""
    for module in (*MODULES.values(), "services.cli.framework.serving", "services.console.process"):
        importlib.import_module(module)
    edges()
    gc.freeze()


def be_a_command(
    arguments: Sequence[str | bytes], folder: Path, environment: Mapping[str, str], streams: list[int]
) -> int:
    """Run the command in a forked child; return its status."""
    exit_on_signals(Exit.TERMINATED)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger().handlers.clear()  # of the test run
    warnings.resetwarnings()
    code = run([os.fsdecode(argument) for argument in arguments])
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit status of a child."""
    fd = os.pidfd_open(process.pid)
    try:
        if not select.select([fd], [], [], PATIENCE_S)[0]:
            process.kill()
            raise AssertionError(f"a command did not end within {PATIENCE_S:.0f} s")
    finally:
        os.close(fd)
    return process.wait()


@dataclass(frozen=True, slots=True)
class Result:
    """Exit status and output of a command."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        (only,) = self.objects
        return only


def ended(
    arguments: Sequence[str | bytes], folder: Path, environment: Mapping[str, str], stdin: bytes = b""
) -> Result:
    """Run a command to its end in a process forked from this one."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        status = _wait(forked(arguments, folder, environment, stdin=given, stdout=out, stderr=err))
        out.seek(0)
        err.seek(0)
        return Result(status, out.read(), err.read().decode("utf-8", "replace"))


class Shell:
    """A folder to run commands in. Settings come only from `environment` and the folder."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        foreign = ("PENSTOCK_", "REDIS_URL", "COLUMNS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environment = {**clean, **ANY_PORT, **(environment or {})}

    def run(self, *arguments: str | bytes, code: int = 0, stdin: bytes = b"", **environment: str) -> Result:
        """Run a command to its end, which must be with `code` and without a traceback; return its result."""
        result = ended(arguments, self.folder, {**self.environment, **environment}, stdin)
        assert result.code == code, result
        assert "Traceback" not in result.err, result.err
        return result

    def fails(self, *arguments: str | bytes, code: int, stdin: bytes = b"", **environment: str) -> str:
        """Run a command that must fail; return its line on standard error."""
        result = self.run(*arguments, code=code, stdin=stdin, **environment)
        lines = result.err.splitlines()
        assert len(lines) == 1, result
        assert lines[0].startswith("penstock: ")
        return lines[0].removeprefix("penstock: ")

    def spawn(
        self, *arguments: str, at_start: Callable[[], None] = lambda: None, **streams: Any
    ) -> subprocess.Popen[bytes]:
        """Start a command; services run as the installed program. `at_start` is called in the child."""
        if arguments[0] not in SERVICES:
            return forked(arguments, self.folder, self.environment, at_start, **streams)
        return subprocess.Popen(
            [*PROGRAM, *arguments], cwd=self.folder, env=self.environment, start_new_session=True,
            preexec_fn=at_start, **streams,
        )  # fmt: skip

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def with_store(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Run `work` with the shell's store, or that of the running `up`, in this process, for speed."""

        async def session() -> T:
            own = self.environment.get("REDIS_URL")
            store = Store(
                own or json.loads((self.folder / "penstock-data" / "up.lock").read_text())["url"], "test"
            )
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(session())

    def stats(self, queue: str) -> dict[str, Any]:
        async def ask(store: Store) -> dict[str, Any]:
            return await store.listing.stats(await store.catalogue.find(queue))

        return self.with_store(ask)

    @contextmanager
    def terminal(self, *arguments: str) -> Iterator[Terminal]:
        """Run the command at its own terminal."""
        ours, theirs = pty.openpty()
        process = self.spawn(*arguments, at_start=_take_terminal, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        found = Terminal(process, ours)
        try:
            yield found
        finally:
            process.kill()
            process.wait()
            found.close()


def _take_terminal() -> None:
    """Make the terminal the controlling one of this child: Ctrl-C becomes SIGINT."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A user at a terminal, who reads the screen and types."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self._fd = fd
        self.screen = b""
        os.set_blocking(fd, False)

    def sees(self, text: str) -> bool:
        self._read()
        return text.encode() in self.screen

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def close(self) -> None:
        """Close the terminal: SIGHUP, and reads and writes fail."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def end(self) -> int:
        """Return the exit status, after all output has been read."""
        eventually(self._ended)
        self._read()
        return self.process.wait()

    def _ended(self) -> bool:
        self._read()
        return self.process.poll() is not None

    def _read(self) -> None:
        try:
            while chunk := os.read(self._fd, 65536):
                self.screen += chunk
        except BlockingIOError:
            return
        except OSError:  # EIO: the other side is closed
            return


class Up:
    """A running `penstock up` in a shell's folder."""

    def __init__(self, shell: Shell, *arguments: str) -> None:
        self.shell = shell
        self._out, self._err = shell.folder / "up.out", shell.folder / "up.err"
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = shell.spawn("up", "--json", *arguments, stdout=out, stderr=err)

    def start(self) -> Up:
        """Return after it has printed that it is ready."""
        eventually(
            lambda: self._out.read_bytes().endswith(b"\n") or self.process.poll() is not None, PATIENCE_S
        )
        assert self.process.poll() is None, self.err
        return self

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def announcement(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._out.read_text())
        return found

    @property
    def tenant(self) -> dict[str, Any]:
        lock = self.shell.folder / "penstock-data" / "up.lock"
        text = eventually(lambda: lock.exists() and lock.read_text())  # truncated before it is written
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def store_pid(self) -> int:
        return int(self.tenant["store_pid"])

    @property
    def edge_pids(self) -> list[int]:
        return [pid for pid in descendants(self.process.pid) if pid != self.store_pid]

    def place(self, listener: str = "document") -> tuple[str, int]:
        found = self.announcement["edges"]["tmq"]["listeners"][listener]
        return found["host"], found["port"]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.place(), 10.0)

    def end(self, signum: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(signum)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill all processes, also after a failed test."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running(shell: Shell, *arguments: str) -> Iterator[Up]:
    up = Up(shell, *arguments)
    try:
        yield up.start()
    finally:
        up.kill()


def lives(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    """Return all processes below this one, in any session."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, pending = [], [pid]
    while pending:
        children = parents.get(pending.pop(), [])
        found += children
        pending += children
    return found


def processes_in(shell: Shell) -> list[str]:
    """Return command lines of processes whose working directory is this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cwd").readlink() == shell.folder and lives(int(path.name)):
                found.append((path / "cmdline").read_text())
        except OSError:
            continue
    return found
