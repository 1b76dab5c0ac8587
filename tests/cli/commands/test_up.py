"""Test `penstock up`: everything runs, prints its addresses, and stops cleanly with all messages kept."""

from __future__ import annotations

import signal
import subprocess

from protos.tmq import encode_enq
from tests.cli.old_client import connected, put
from tests.cli.shell import NO_CONSOLE, Shell, Terminal, descendants, lives, running
from tests.servers import PATIENCE_S, eventually, free_port

QUEUES = """
metadata: {name: orders}
---
metadata: {name: mail}
spec: {maxLength: 5, access: {edges: [tmq], peers: [10.1.0.0/16], certificates: [shop.example.org]}}
---
kind: Peer
metadata: {name: east}
spec: {protocol: text, addresses: ["127.0.0.1:9"]}
"""
IN_ORDER = "ready to exit, bye bye"  # in the log of the store's server


def test_up_prints_addresses_and_ends_with_its_terminal(alone: Shell) -> None:
    """Check that `up` prints its addresses and ends with its terminal, also while it logs to it."""
    with alone.terminal("up", "--set", "log.level=INFO") as terminal:
        eventually(lambda: terminal.sees("ready; press Ctrl-C to stop"))
        assert terminal.sees("data in penstock-data (valkey 9.1")
        assert terminal.sees("ack levels memory, fsync")
        listeners = ("tmq document: ", "tmq reference: ", "pubsub text: ", "pubsub link: ", "rqp mca: ")
        for listener in (*listeners, "ring clients: "):
            assert terminal.sees(f"{listener}127.0.0.1:")
        text, ring, rqp, *tmq = [tried(line) for line in examples(terminal)]
        assert "MESSAGE 1 hello\n" in text
        assert rqp == ""  # there is no queue 7
        assert ring == " 00 00 00 05\n"  # created
        assert tmq == [" 01\n", " 01\n"]  # exists
        assert terminal.sees("metrics and health: http://127.0.0.1:")
        token = (alone.folder / "penstock-data" / "console.token").read_text().strip()
        assert terminal.sees(f"/#token={token}\r\n")
        processes = descendants(terminal.process.pid)
        terminal.close()
        assert terminal.process.wait(PATIENCE_S) == 0
    assert not any(map(lives, processes))
    assert IN_ORDER in (alone.folder / "penstock-data" / "store.log").read_text()


def examples(terminal: Terminal) -> list[str]:
    """Return the example command for each listener."""
    lines = [line for line in terminal.screen.decode().splitlines() if line.startswith("    ")]
    return [line.strip() for line in lines if "metrics" not in line]


def tried(line: str) -> str:
    """Return the output of a command in a shell."""
    return subprocess.run(line, shell=True, capture_output=True, text=True, timeout=30, check=True).stdout


def test_queues_file_is_applied_and_messages_survive(alone: Shell) -> None:
    """Check an orderly stop with a connected client, and one that a second signal hurries."""
    alone.write("queues.yaml", QUEUES)
    with running(alone, *NO_CONSOLE) as up:
        assert up.announcement["queues"] == {"orders": "created", "mail": "created"}
        assert up.announcement["peers"] == {"east": "created"}
        mail = alone.run("queue", "show", "mail", "--json").object
        assert (mail["owner"], mail["spec"]["access"]["peers"]) == ("file", ["10.1.0.0/16"])
        alone.run("put", "mail", "x")  # access rules do not apply to the administrator
        processes = descendants(up.process.pid)
        with connected(up, b"orders") as client:
            assert client.enqueue(b"kept")
            assert up.end(signal.SIGQUIT) == 0
    assert not any(map(lives, processes))
    assert IN_ORDER in (alone.folder / "penstock-data" / "store.log").read_text()
    assert '"drained"' in up.err
    with running(alone, *NO_CONSOLE) as up:
        assert up.announcement["queues"] == {"orders": "unchanged", "mail": "unchanged"}
        assert alone.run("get", "orders").out == b"kept"
        with connected(up, b"orders") as client:
            client.send(encode_enq(bytes(64), b"never finished")[:-1])
            up.process.send_signal(signal.SIGTERM)
            eventually(lambda: '"action": "draining"' in up.err)
            up.process.send_signal(signal.SIGTERM)
            assert up.wait() == 1
    assert '"hurried": true' in up.err


def test_server_port_folder_and_console_options(alone: Shell) -> None:
    """Check options: a path too long for the store's socket needs the port; an empty file declares nothing."""
    alone.write("queues.yaml", "# none yet\n")
    far = ("--data-dir", str(alone.folder / ("x" * 100)))
    assert "choose a shorter --data-dir" in alone.fails("up", *far, code=2)
    port = free_port()
    server = ("--store-server", "redis-server", "--store-port", str(port))
    with running(alone, *far, *server, *NO_CONSOLE) as up:
        assert (
            up.announcement["store"]["server"],
            up.announcement["queues"],
            up.announcement["console"],
        ) == ("redis", {}, None)
        eventually(lambda: len(descendants(up.process.pid)) == 1 + len(up.announcement["edges"]))
        put(up, b"q", b"x")
        for place in (far, ("--store", f"redis://127.0.0.1:{port}")):
            assert alone.run("queue", "list", "q", "--json", *place).object["stats"]["ready"] == 1


def test_invalid_console_settings(alone: Shell) -> None:
    line = alone.fails("up", "--set", "console.host=0.0.0.0", code=2)
    assert "without console.tokens or console.proxy" in line
