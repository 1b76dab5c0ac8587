"""The load generator's interface in Python: build it once a run, pass it connected sockets, read one line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ("main.c", "loop.c", "rules.c", "listen.c", "sink.c")
OVERTIME_S = 15.0  # how much longer than its own limit a run may take before it is killed
SINK_LIFETIME_S = 120


class LoadFailed(OSError):
    """The generator could not finish: the peer closed the connection or sent an invalid answer."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Connections that only listen while the load's own connections publish. A run waits for all their messages."""

    sockets: Sequence[socket.socket]
    rule: str  # how their messages are counted, a name of load/listen.c
    fan: int  # number of connections that receive each message
    # messages that publishers may be ahead of the slowest, which gets each message; 0: no limit
    ahead: int = 0
    stamped: bool = False  # messages begin with 16 characters: the time when they were due


@dataclass(frozen=True, slots=True)
class Load:
    """The requests to send: connected and greeted sockets, and one prebuilt request for each."""

    rule: str  # how replies are counted, a name of load/rules.c
    sockets: Sequence[socket.socket]
    requests: Sequence[bytes]
    window: int  # messages in flight on a connection
    per_request: int = 1  # messages that one request asks for
    ok: str = ""  # rule `line`: beginning of a good reply
    ok_status: int = 1  # rule `tmq-put`: the status byte of success
    parts: int = 1  # each request consists of so many parts of equal length, sent in turn
    audience: Audience | None = None

    @property
    def all_sockets(self) -> list[socket.socket]:
        """Return the sockets that send, then those that listen."""
        return [*self.sockets, *(self.audience.sockets if self.audience else ())]

    def close(self) -> None:
        for each in self.all_sockets:
            each.close()


@dataclass(frozen=True, slots=True)
class Bound:
    """The end of a run: after `count` messages or after `seconds`, if these pass first."""

    count: int
    seconds: float
    rate: float = 0.0  # messages/s offered; 0: as many as the windows allow


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run of the generator. Latencies in us, from request (paced: from due time) to answer.

    With an audience: `seconds` until it had received all; with stamps, latencies are from due time to receipt.
    """

    messages: int  # answered with success within the time
    seconds: float
    settled: int = 0  # the same, plus those in flight when time was up
    refused: int = 0
    empty: int = 0  # takes that found the queue empty and were repeated
    heard: int = 0  # messages received by the audience, counted for each listener
    p50_us: float = 0.0
    p99_us: float = 0.0
    max_us: float = 0.0
    cpu_s: float = 0.0  # of the generator itself
    error: str | None = field(default=None, repr=False)

    @property
    def rate(self) -> float:
        """Return the messages a second."""
        return self.messages / self.seconds if self.seconds else 0.0


def is_loopback(sock: socket.socket) -> bool:
    """Return True if the other end is on this machine's loopback; the generator refuses all other peers."""
    try:
        name = sock.getpeername()
    except OSError:
        return False
    return sock.family in (socket.AF_INET, socket.AF_INET6) and ip_address(name[0]).is_loopback


def find_compiler() -> str | None:
    named = os.environ.get("CC", "")
    return next((path for path in map(shutil.which, (named, "cc", "gcc", "clang")) if path), None)


@dataclass(frozen=True, slots=True)
class Generator:
    """A load generator: the C program, or its Python version."""

    command: tuple[str, ...]
    language: str  # shown in the results

    @classmethod
    def build(cls, folder: Path) -> Generator:
        """Compile the generator into `folder`; without a compiler that works, fall back to Python."""
        compiler, program = find_compiler(), folder / "load"
        if compiler:
            sources = [str(HERE / "load" / name) for name in SOURCES]
            built = subprocess.run([compiler, "-O2", "-o", str(program), *sources], capture_output=True)
            if built.returncode == 0:
                return cls((str(program),), "C")
        return cls.python()

    @classmethod
    def python(cls) -> Generator:
        return cls((sys.executable, "-m", "benchmarks.fallback"), "Python")

    def run(self, load: Load, bound: Bound) -> Outcome:
        """Drive the load to its bound. Raises LoadFailed. The caller closes the sockets."""
        if not all(map(is_loopback, load.all_sockets)):
            raise LoadFailed("refused: the other end of a socket is not on loopback")
        fds = [each.fileno() for each in load.all_sockets]
        requests = b"".join(struct.pack(">I", len(request)) + request for request in load.requests)
        try:
            ended = subprocess.run(
                [*self.command, *self._options(load, bound, fds)],
                input=requests,
                capture_output=True,
                pass_fds=fds,
                cwd=HERE.parent,
                timeout=bound.seconds + OVERTIME_S,
            )
        except subprocess.TimeoutExpired as late:
            raise LoadFailed(f"the generator did not end {OVERTIME_S:.0f} s after its time") from late
        return self._outcome(ended)

    @staticmethod
    def _options(load: Load, bound: Bound, fds: list[int]) -> list[str]:
        options: dict[str, object] = {
            "rule": load.rule,
            "fds": ",".join(map(str, fds)),
            "window": load.window,
            "per-request": load.per_request,
            "count": bound.count,
            "seconds": bound.seconds,
            "ok": load.ok,
            "ok-status": load.ok_status,
            "parts": load.parts,
        }
        if bound.rate:
            options["rate"] = bound.rate
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return words + (_audience_options(load.audience) if load.audience else [])

    @staticmethod
    def _outcome(ended: subprocess.CompletedProcess[bytes]) -> Outcome:
        if not ended.stdout:
            raise LoadFailed(ended.stderr.decode(errors="replace").strip() or f"exit {ended.returncode}")
        outcome = Outcome(**json.loads(ended.stdout))
        if outcome.error:
            raise LoadFailed(f"{outcome.error} (after {outcome.settled:,} messages)")
        return outcome

    @contextlib.contextmanager
    def sink(self, request_bytes: int, reply: bytes) -> Iterator[int]:
        """Run a server that answers `reply` to every `request_bytes` received; yield its port."""
        options = ["--sink", "--request-bytes", str(request_bytes), "--reply", reply.hex()]
        command = [*self.command, *options, "--seconds", str(SINK_LIFETIME_S)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE.parent
        ) as server:
            try:
                assert server.stdout is not None
                yield int(server.stdout.readline())
            finally:
                server.kill()


def _audience_options(audience: Audience) -> list[str]:
    words = ["--listeners", str(len(audience.sockets)), "--listen", audience.rule, "--fan", str(audience.fan)]
    return words + ["--ahead", str(audience.ahead)] * bool(audience.ahead) + ["--stamped"] * audience.stamped
