"""Penstock's RQP edge as an agent of RQP/cast: a sender on 127.0.0.1, and a receiver on 127.0.0.2."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.peers.peer import dial
from benchmarks.peers.redis import Store
from benchmarks.peers.rqp import path_of_ours
from benchmarks.peers.tmq import store_url
from benchmarks.process import Workshop, free_port

HERE, THERE = "127.0.0.1", "127.0.0.2"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ports that both machines use."""

    request_port: int
    findreceiver_port: int

    @classmethod
    def free(cls) -> Numbers:
        return cls(free_port(), free_port())


def serve_cast_command(store_port: int, mca_port: int, host: str, numbers: Numbers, asks: str) -> list[str]:
    """Return the command line of an agent. asks: the machine that it sends to; '': it receives."""
    settings = {
        "store.url": store_url(store_port),
        "health.port": free_port(),
        "edges.rqp.listeners.mca.port": mca_port,
        "edges.rqp.cast.host": host,
        "edges.rqp.cast.request_port": numbers.request_port,
        "edges.rqp.cast.findreceiver_port": numbers.findreceiver_port,
        "edges.rqp.cast.receives": json.dumps(not asks),
        "edges.rqp.cast.sends": json.dumps(bool(asks)),
        "edges.rqp.cast.max_sessions_per_address": 16,  # as many as there are ports
    }
    if asks:
        settings["edges.rqp.cast.peers.there.addresses"] = json.dumps([f"{asks}:{numbers.request_port}"])
    command = [sys.executable, "-m", "services.rqp"]
    return command + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@contextlib.contextmanager
def cast_agent(
    workshop: Workshop, name: str, store: Store, host: str, numbers: Numbers, asks: str = ""
) -> Iterator[None]:
    """Run an agent. Raises NotRun."""
    port = free_port()
    command = serve_cast_command(store.port, port, host, numbers, asks)
    daemon = workshop.start(name, command, lambda: dial(port).close(), path_of_ours())
    try:
        yield
    finally:
        workshop.stop(daemon)
