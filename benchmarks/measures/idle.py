"""Measure the cost of an idle connection: the server's resident memory before and after many are opened."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from benchmarks.machine import settled_kib
from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import Shape, WirePeer
from benchmarks.peers.tmq import Tmq
from benchmarks.results import Finding, Target

WANTED = Target("<=", 16.0)  # KiB
NAMES = ("tmq", "xadd", "nats", "beanstalkd", "rabbitmq")
FIRST = 100  # opened and closed first, so that one-time setup of a server does not count


def measure(bench: Bench) -> list[Finding]:
    return [_finding(bench, name) for name in NAMES if name in bench.peers]


def _finding(bench: Bench, name: str) -> Finding:
    peer, count = bench.peers[name], bench.plan.idle_connections
    target = WANTED if name == "tmq" else None
    what = f"{count:,} idle connections: {'the store, raw' if name == 'xadd' else peer.title}"
    values: list[float] = []
    reason = bench.start(name)
    if not reason:
        bench.say(what)
        try:
            values = [_kib_per_connection(peer, count)]
        except OSError as failure:
            reason = str(failure)
    return Finding("idle", what, values, "KiB each", target, reason)


def _kib_per_connection(peer: object, count: int) -> float:
    assert isinstance(peer, WirePeer)
    opener = _opener(peer)
    with contextlib.ExitStack() as first:
        for _ in range(FIRST):
            first.enter_context(opener())
    pid = peer.daemon.pid
    before = settled_kib(pid)
    with contextlib.ExitStack() as all_of_them:
        for _ in range(count):
            all_of_them.enter_context(opener())
        return (settled_kib(pid) - before) / count


def _opener(peer: WirePeer) -> Callable[[], socket.socket]:
    """Return a function that connects; an idle TMQ client has its queue open."""
    if not isinstance(peer, Tmq):
        return peer.connect
    queue = peer.next_queue()
    peer.create(queue)
    return lambda: peer.open(Shape(1, 1), queue)[0][0]
