"""Test `penstock serve`: one edge in the foreground, and every reason for which it cannot start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.shell import Shell
from tests.servers import eventually, free_port

NO_STORE = "redis://127.0.0.1:1"  # no edge connects before it has started
DOCUMENT = "edges.tmq.listeners.document"


@contextmanager
def taken() -> Iterator[int]:
    """Yield a port that another program uses."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_serve_runs_one_edge_on_the_store_of_up(shell: Shell) -> None:
    log = shell.folder / "serve.err"
    with open(log, "wb") as err:
        serving = shell.spawn("serve", "tmq", stderr=err)
    try:
        eventually(lambda: '"action": "started"' in log.read_text())
        events = [json.loads(line) for line in log.read_text().splitlines()]
        place = next(e for e in events if e["action"] == "listening" and e["listener"] == "document")
        with socket.create_connection((place["host"], place["port"])) as client:
            client.sendall(b"\0\0\0\0\5serve")
            assert client.recv(1) == b"\0"
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(30) == 0
    finally:
        serving.kill()
        serving.wait()
    assert shell.run("queue", "show", "serve", "--json").object["owner"] == "edge:tmq"


def test_serve_needs_an_edge_and_a_store(alone: Shell) -> None:
    assert "edges are: pubsub, ring, rqp, tmq" in alone.fails("serve", "nonsense", code=2)
    assert alone.fails("serve", "tmq", code=3).startswith("no_store: ")


@pytest.mark.parametrize(("setting", "workers"), [("health.port", "1"), (f"{DOCUMENT}.port", "2")])
def test_port_in_use_names_setting_and_holder(alone: Shell, setting: str, workers: str) -> None:
    with taken() as port:
        options = ["--store", NO_STORE, "--set", f"{setting}={port}", "--workers", workers]
        error = alone.run("serve", "tmq", *options, code=2).err.splitlines()[-1]
        document = json.loads(alone.run("serve", "tmq", *options, "--json", code=2).err.splitlines()[-1])
    text = (
        f"tmq cannot start: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        f"another `penstock up` or `serve` may use it: stop that, or change {setting}"
    )
    assert error == f"penstock: edge_unusable: {text}"
    assert document == {"error": "edge_unusable", "message": text, "exit": 2}


def test_missing_tls_files_name_the_setting(alone: Shell) -> None:
    alone.write(
        "penstock.yaml",
        "edges: {tmq: {listeners: {document: {tls: {certificate: server.pem, key: server.key}}}}}",
    )
    error = alone.fails("serve", "tmq", "--store", NO_STORE, "--workers", "2", code=2)
    assert error == (
        "edge_unusable: tmq cannot start: certificate: server.pem cannot be read: No such file or directory; "
        f"change {DOCUMENT}.tls"
    )


def test_conflict_found_at_start_has_a_label(alone: Shell) -> None:
    """Check that a conflict of two listeners on one port, each valid on its own, has a label."""
    port = free_port()
    both = [f"--set=edges.tmq.listeners.{name}.port={port}" for name in ("document", "reference")]
    *log, last = alone.run("serve", "tmq", "--store", NO_STORE, "--json", *both, code=2).err.splitlines()
    assert json.loads(last)["error"] == "edge_unusable"
    assert f"cannot listen on 127.0.0.1 port {port}" in json.loads(last)["message"]
    assert all("action" in json.loads(line) for line in log)


def test_unknown_health_host(alone: Shell) -> None:
    host = ["--set", "health.host=no.such.host.invalid"]
    error = alone.fails("serve", "tmq", "--store", NO_STORE, *host, code=2)
    assert error.startswith("edge_unusable: tmq cannot start: cannot listen on no.such.host.invalid port 0: ")
    assert error.endswith("; change health.port or its host")


def test_invalid_url_as_with_other_commands(alone: Shell) -> None:
    assert alone.fails("serve", "tmq", "--store", "http://x", code=2).startswith("bad_settings: store.url: ")


FAULTY = """
from services.cli.terminal.exits import Failure
from services.cli.framework.serving import serve_edge
from services.kit.edge import Edge, EdgeSettings
from services.kit.config.settings import load

class Settings(EdgeSettings):
    listeners: dict = {}

async def start(context):
    raise ArithmeticError("a fault of ours")

try:
    serve_edge(Edge("faulty", Settings, start, lambda _: []), load(), None)
except Failure as failure:
    print(failure.label, failure)
"""


def test_internal_error_has_a_label_and_a_logged_traceback(alone: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTY],
        env=alone.environment,
        cwd=alone.folder,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "edge_failed faulty failed: ArithmeticError: a fault of ours; see its log\n"
    (event,) = [one for one in map(json.loads, done.stderr.splitlines()) if one["action"] == "failed"]
    assert "in start" in event["exc_info"]
