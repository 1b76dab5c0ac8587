"""Test that `penstock up` restarts every killed process with its addresses and all messages, any number of times."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.cli.old_client import put, takes
from tests.cli.shell import Shell, Up, descendants, lives, running
from tests.kit.authority import Authority
from tests.servers import Server, eventually

# documented configurations without their ports, combined
DOCUMENTED = """
edges:
  tmq: {workers: 2}
  pubsub:
    listeners:
      text: {host: 127.0.0.1, tls: {certificate: chain.pem, key: key.pem}}
      utf.8: {host: 127.0.0.1, port: 0, charset: utf-8}
      link: {tls: {certificate: chain.pem, key: key.pem, client_ca: ca.pem}}
    neighbours: ["localhost:1"]
  ring:
    node: {group: 7, beacon_host: 127.0.0.2, times: {own_ring_s: 3, self_s: 6, open_s: 2, find_s: 3}}
  rqp:
    listeners: {mca: {host: 127.0.0.4, allow: [127.0.0.1]}}
    mca: {peers: {west: {addresses: ["127.0.0.1:1"], window: 100}}}
    cast: {host: 127.0.0.3, rqprc: machines.rqprc}
console: {port: 0}
metrics: {queues: true}
"""


@pytest.fixture
def documented(alone: Shell, server: Server) -> Shell:
    """Return a shell with the documented configuration, for edges on an external store."""
    Authority.create(alone.folder)
    alone.write("penstock.yaml", DOCUMENTED)
    alone.write("machines.rqprc", "127.0.0.1\n")
    alone.environment["REDIS_URL"] = server.url
    assert "not_initialised" in alone.fails("up", code=3)
    alone.run("store", "init")
    return alone


@pytest.mark.parametrize(("configuration", "times"), [("alone", 2), ("documented", 1)])
def test_every_process_is_restarted_on_its_ports(
    configuration: str, times: int, request: pytest.FixtureRequest
) -> None:
    """Check that each process listens on its first ports again, and no other process listens."""
    shell: Shell = request.getfixturevalue(configuration)
    with running(shell) as up:
        first = listening(up)
        put(up, b"orders", b"kept")
        for _ in range(times):
            kill_all(up)
        assert takes(up, b"orders") == b"kept"
        assert eventually(lambda: listening(up), until=lambda found: found == first, pause_s=0.1)
        files = {path.name for path in (shell.folder / "penstock-data").iterdir()}
        assert ('"action": "store_restarted"' in up.err) is ("store.log" in files)
        assert (files == {"console.token"}) is ("REDIS_URL" in shell.environment)
        for place, ports in announced(up).items():
            assert len(ports) == 1, place
        assert up.end() == 0


def kill_all(up: Up) -> None:
    """Kill every process below `up`; return after all were replaced."""
    killed = descendants(up.process.pid)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(map(lives, killed)) and all(map(serves, pages(up))), pause_s=0.1)


def pages(up: Up) -> Iterator[str]:
    """Return the readiness pages of all processes."""
    processes = [*up.announcement["edges"].values(), up.announcement["console"]]
    return ("http://{host}:{port}/readyz".format(**process["health"]) for process in processes)


def serves(url: str) -> bool:
    with urlopen(url, timeout=10) as answer:
        return bool(answer.status == 200)


def listening(up: Up) -> set[tuple[str, str]]:
    """Return the TCP addresses on which processes of `up` listen, as the kernel prints them."""
    inodes = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # TCP_LISTEN
                inodes[f"socket:[{fields[9]}]"] = (table, fields[1])
    files = (file for pid in descendants(up.process.pid) for file in Path(f"/proc/{pid}/fd").iterdir())
    return {inodes[name] for file in files if (name := os.readlink(file)) in inodes}


def announced(up: Up) -> dict[str, set[tuple[str, int]]]:
    """Return the addresses of each listener, TCP and UDP, from the log."""
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for line in up.err.splitlines():
        event: dict[str, Any] = json.loads(line)
        if "setting" in event:
            found[str((event.get("edge"), event["setting"]))].add((event["host"], event["port"]))
    return found
