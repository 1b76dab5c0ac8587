"""python -m benchmarks.fallback: the Python version of load/main.c and load/loop.c."""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import time
from typing import BinaryIO

from benchmarks.fallback.conn import Conn, Run
from benchmarks.fallback.listen import LISTENING, Listener
from benchmarks.fallback.sink import run_sink
from benchmarks.generator import is_loopback
from benchmarks.replies import RULES, BrokenReply

GRACE_S = 3.0  # for replies in flight when time is up
GRACE_TO_HEAR_S = 5.0  # for messages that listeners have not received yet
TICK_S = 0.05


def drive(run: Run, conns: list[Conn], seconds: float) -> tuple[int, float]:
    """Run to the bound and wait for replies in flight; return the messages and seconds within the time.

    With listeners, the time ends when they have received all messages.
    """
    with select.epoll() as poll:
        everybody: list[Conn | Listener] = [*conns, *run.listeners]
        by_fd = {each.sock.fileno(): each for each in everybody}
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        run.started = run.now = time.monotonic()
        _turn(run, conns, poll, by_fd)
        while not run.is_complete and run.now < run.started + seconds:
            _turn(run, conns, poll, by_fd)
        in_time, took = run.done, run.now - run.started
        run.stopping = True
        end = run.now + (GRACE_TO_HEAR_S if run.listeners else GRACE_S)
        while run.now < end and not _is_settled(run, conns):
            _turn(run, conns, poll, by_fd)
    if not run.listeners:
        return in_time, took
    if not run.is_heard_once:
        raise BrokenReply("listeners did not hear each message once")
    return run.done, run.now - run.started


def _is_settled(run: Run, conns: list[Conn]) -> bool:
    if any(conn.unsent for conn in conns):
        return False
    return run.is_complete or (run.is_heard and all(conn.in_flight == 0 for conn in conns))


def _turn(run: Run, conns: list[Conn], poll: select.epoll, by_fd: dict[int, Conn | Listener]) -> None:
    if run.rate or run.ahead or run.now == run.started:
        run.slowest = min((each.heard for each in run.listeners), default=0)
        for conn in conns:
            conn.refill()
            conn.flush(poll)
    wait = min(max(run.due() - run.now, 0.0), TICK_S) if run.rate else TICK_S
    events = poll.poll(wait)
    run.now = time.monotonic()
    for fd, _ in events:
        ready = by_fd[fd]
        ready.receive()
        if isinstance(ready, Conn):
            ready.refill()
            ready.flush(poll)


def quantile_us(waits: list[tuple[float, int]], q: float) -> float:
    """Return a quantile in us. waits: seconds, and the number of messages that waited so long."""
    left = q * (sum(n for _, n in waits) - 1)
    for seconds, n in sorted(waits):
        left -= n
        if left < 0:
            return round(seconds * 1e6, 1)
    return 0.0


def read_request(stream: BinaryIO) -> bytes:
    (size,) = struct.unpack(">I", stream.read(4))
    return stream.read(size)


def adopt(fds: str) -> list[socket.socket]:
    """Return the inherited sockets. Raises ValueError if one is connected to another machine."""
    sockets = [socket.socket(fileno=int(fd)) for fd in fds.split(",")]
    if not all(map(is_loopback, sockets)):
        raise ValueError("refused: the other end of a socket is not on loopback")
    for sock in sockets:
        sock.setblocking(False)
    return sockets


def prepare(options: argparse.Namespace) -> tuple[Run, list[Conn]]:
    """Read the requests of the connections that send. Raises ValueError."""
    o = options
    if o.listeners and (o.listen is None or o.fan < 1):
        raise ValueError("--listeners need --listen (a rule that exists) and --fan")
    run = Run(o.rule, o.window, o.per_request, o.count, o.rate, o.parts, o.fan, o.ahead, o.stamped)
    sockets = adopt(options.fds)
    askers = len(sockets) - options.listeners
    waits = run.waits if run.stamped else None
    run.listeners = [Listener(sock, options.listen, waits) for sock in sockets[askers:]]
    ok, half = options.ok.encode(), run.per_request // 2
    requests = [(sock, read_request(sys.stdin.buffer)) for sock in sockets[:askers]]
    if any(len(request) % o.parts for _, request in requests):
        raise ValueError("the parts of a request must be of one length")
    return run, [Conn(run, sock, request, ok, o.ok_status, half) for sock, request in requests]


def run_load(options: argparse.Namespace) -> int:
    try:
        run, conns = prepare(options)
    except ValueError as wrong:
        print(f"load: {wrong}", file=sys.stderr)
        return 2
    error, cpu = None, time.process_time()
    messages, seconds = 0, 0.0
    try:
        messages, seconds = drive(run, conns, options.seconds)
    except (BrokenReply, ConnectionError) as failure:
        error = str(failure)
    cpu = time.process_time() - cpu
    print(json.dumps({**report(run), "messages": messages, "seconds": seconds, "cpu_s": cpu, "error": error}))
    return 1 if error else 0


def report(run: Run) -> dict[str, object]:
    counts = {"settled": run.done, "refused": run.refused, "empty": run.empty, "heard": run.heard}
    quantiles = (("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1))
    return {**counts, **{name: quantile_us(run.waits, q) for name, q in quantiles}}


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
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--listeners", type=int, default=0)
    parser.add_argument("--listen", choices=LISTENING)
    parser.add_argument("--fan", type=int, default=0)
    parser.add_argument("--ahead", type=int, default=0)
    parser.add_argument("--stamped", action="store_true")
    parser.add_argument("--sink", action="store_true")
    parser.add_argument("--request-bytes", type=int, default=0)
    parser.add_argument("--reply", default="")
    options = parser.parse_args()
    if options.sink:
        return run_sink(options.request_bytes, bytes.fromhex(options.reply), options.seconds)
    return run_load(options)


if __name__ == "__main__":
    sys.exit(main())
