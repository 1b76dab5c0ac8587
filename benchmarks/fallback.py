"""The load generator in Python, for machines without a C compiler: the options and the output of load/main.c.

Slower by far; the results name it, and its ceiling stands beside them.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import BinaryIO

from benchmarks.generator import is_loopback
from benchmarks.replies import REQUEST_ONCE, RULES, BrokenReply

READ_BYTES = 1 << 18
GRACE_S = 3.0  # for replies that are under way when time is up
TICK_S = 0.05


@dataclass(slots=True)
class Run:
    """The options, and what all connections together have done."""

    rule: str
    window: int
    per_request: int
    count: int
    rate: float
    asked: int = 0
    done: int = 0
    refused: int = 0
    empty: int = 0
    started: float = 0.0
    now: float = 0.0
    stopping: bool = False
    waits: list[tuple[float, int]] = field(default_factory=list)  # seconds, messages

    @property
    def is_complete(self) -> bool:
        return self.done + self.refused >= self.count

    def due(self) -> float:
        """When the next message is due: now, or in paced mode its place in time."""
        return self.started + self.asked / self.per_request / self.rate if self.rate else self.now


@dataclass(slots=True)
class Conn:
    """One connection; also the `Conversation` of its rule."""

    run: Run
    sock: socket.socket
    request: bytes
    ok: bytes
    ok_status: int
    half_pattern: int
    phase: int = 0
    tag: int = 0
    delivering: int = 0
    confirmed: set[int] = field(default_factory=set)
    unread: bytes = b""
    unsent: bytearray = field(default_factory=bytearray)
    in_flight: int = 0
    groups: deque[list[float]] = field(default_factory=deque)  # [asked at, messages of it in flight]

    def done(self, messages: int) -> None:
        self.run.done += messages
        for stamp, n in self._answered(messages):
            self.run.waits.append((self.run.now - stamp, n))

    def refused(self, messages: int) -> None:
        self.run.refused += messages
        self._answered(messages)

    def empty(self) -> None:
        self._answered(1)
        self.run.empty += 1
        self.run.asked -= 1

    def emit(self, data: bytes) -> None:
        self.unsent += data

    def _answered(self, messages: int) -> list[tuple[float, int]]:
        """Take the oldest ones off the flight."""
        taken = []
        while messages and self.groups:
            group = self.groups[0]
            n = min(messages, int(group[1]))
            group[1] -= n
            messages -= n
            self.in_flight -= n
            taken.append((group[0], n))
            if not group[1]:
                self.groups.popleft()
        return taken

    def _may_ask(self) -> bool:
        run = self.run
        if run.stopping or self.in_flight + run.per_request > run.window:
            return False
        return run.asked < run.count or run.rule in REQUEST_ONCE

    def refill(self) -> None:
        run = self.run
        while self._may_ask() and (at := run.due()) <= run.now:
            self.unsent += self.request
            if run.rule in REQUEST_ONCE:
                self.request = b""
            self.groups.append([at, run.per_request])
            self.in_flight += run.per_request
            run.asked += run.per_request

    def receive(self) -> None:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise BrokenReply("the peer closed the connection")
        self.run.now = time.monotonic()
        self.unread += data
        self.unread = self.unread[RULES[self.run.rule](self, self.unread) :]

    def flush(self, poll: select.epoll) -> None:
        try:
            while self.unsent:
                del self.unsent[: self.sock.send(self.unsent)]
        except BlockingIOError:
            pass
        poll.modify(self.sock, select.EPOLLIN | (select.EPOLLOUT if self.unsent else 0))


def drive(run: Run, conns: list[Conn], seconds: float) -> tuple[int, float]:
    """Run to the bound and let what is under way arrive; messages and seconds within the time."""
    with select.epoll() as poll:
        by_fd = {conn.sock.fileno(): conn for conn in conns}
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        run.started = run.now = time.monotonic()
        _turn(run, conns, poll, by_fd)
        while not run.is_complete and run.now < run.started + seconds:
            _turn(run, conns, poll, by_fd)
        in_time, took = run.done, run.now - run.started
        run.stopping = True
        end = run.now + GRACE_S
        while run.now < end and (
            any(conn.unsent for conn in conns)
            or not (run.is_complete or all(conn.in_flight == 0 for conn in conns))
        ):
            _turn(run, conns, poll, by_fd)
    return in_time, took


def _turn(run: Run, conns: list[Conn], poll: select.epoll, by_fd: dict[int, Conn]) -> None:
    if run.rate or run.now == run.started:
        for conn in conns:
            conn.refill()
            conn.flush(poll)
    wait = min(max(run.due() - run.now, 0.0), TICK_S) if run.rate else TICK_S
    events = poll.poll(wait)
    run.now = time.monotonic()
    for fd, _ in events:
        conn = by_fd[fd]
        conn.receive()
        conn.refill()
        conn.flush(poll)


def quantile_us(waits: list[tuple[float, int]], q: float) -> float:
    """Of seconds with how many messages waited so long."""
    left = q * (sum(n for _, n in waits) - 1)
    for seconds, n in sorted(waits):
        left -= n
        if left < 0:
            return round(seconds * 1e6, 1)
    return 0.0


def read_request(stream: BinaryIO) -> bytes:
    (size,) = struct.unpack(">I", stream.read(4))
    return stream.read(size)


def run_load(options: argparse.Namespace) -> int:
    run = Run(options.rule, options.window, options.per_request, options.count, options.rate)
    conns = []
    for fd in options.fds.split(","):
        sock = socket.socket(fileno=int(fd))
        if not is_loopback(sock):
            print("load: refused: the other end of a socket is not on loopback", file=sys.stderr)
            return 2
        sock.setblocking(False)
        request = read_request(sys.stdin.buffer)
        conns.append(Conn(run, sock, request, options.ok.encode(), options.ok_status, run.per_request // 2))
    error, cpu = None, time.process_time()
    messages, seconds = 0, 0.0
    try:
        messages, seconds = drive(run, conns, options.seconds)
    except (BrokenReply, ConnectionError) as failure:
        error = str(failure)
    cpu = time.process_time() - cpu
    latencies = {
        name: quantile_us(run.waits, q) for name, q in (("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1))
    }
    counts = {"settled": run.done, "refused": run.refused, "empty": run.empty}
    print(
        json.dumps(
            {"messages": messages, "seconds": seconds, **counts, **latencies, "cpu_s": cpu, "error": error}
        )
    )
    return 1 if error else 0


def run_sink(request_bytes: int, reply: bytes, seconds: float) -> int:
    """Count bytes and say yes; ends with its standard input, or when time is up."""
    received: dict[int, int] = {}
    clients: dict[int, socket.socket] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener, select.epoll() as poll:
        print(listener.getsockname()[1], flush=True)
        poll.register(listener, select.EPOLLIN)
        poll.register(sys.stdin, select.EPOLLIN)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for fd, _ in poll.poll(1):
                if fd == sys.stdin.fileno():
                    return 0
                if fd == listener.fileno():
                    client, _ = listener.accept()
                    clients[client.fileno()] = client
                    poll.register(client, select.EPOLLIN)
                elif data := clients[fd].recv(READ_BYTES):
                    whole, received[fd] = divmod(received.get(fd, 0) + len(data), request_bytes)
                    clients[fd].sendall(reply * whole)
                else:
                    clients.pop(fd).close()
                    received.pop(fd, None)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="load")
    parser.add_argument("--rule", choices=RULES)
    parser.add_argument("--fds")
    parser.add_argument("--window", type=int, default=1)
    parser.add_argument("--per-request", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--ok", default="")
    parser.add_argument("--ok-status", type=int, default=1)
    parser.add_argument("--sink", action="store_true")
    parser.add_argument("--request-bytes", type=int, default=0)
    parser.add_argument("--reply", default="")
    options = parser.parse_args()
    if options.sink:
        return run_sink(options.request_bytes, bytes.fromhex(options.reply), options.seconds)
    return run_load(options)


if __name__ == "__main__":
    sys.exit(main())
