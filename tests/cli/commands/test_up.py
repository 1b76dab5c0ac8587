"""penstock up: everything runs."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

from tests.cli.old_client import connected, put
from tests.cli.shell import Shell, Terminal, Up, running
from tests.servers import Server, eventually, free_port


def test_an_old_client_and_the_command_line_meet(up: Up) -> None:
    with connected(up, b"orders") as client:
        assert client.created
        assert client.enqueue(b"from the client")
        up.shell.run("put", "orders", "from the command line")
        assert up.shell.run("get", "orders").out == b"from the client"
        assert client.dequeue() == b"from the command line"


def test_it_says_where_everything_is(alone: Shell) -> None:
    with alone.terminal("up") as terminal:
        eventually(lambda: terminal.sees("ready; Ctrl-C stops everything in order"))
        assert terminal.sees("data in penstock-data (valkey 9.1")
        assert terminal.sees("ack levels memory, fsync")
        listeners = ("tmq document: ", "tmq reference: ", "pubsub text: ", "pubsub link: ", "rqp mca: ")
        for listener in (*listeners, "ring clients: "):
            assert terminal.sees(f"{listener}127.0.0.1:")
        assert not terminal.sees("127.0.0.1:0")
        text, ring, rqp, *tmq = [tried(line) for line in examples(terminal)]
        assert "MESSAGE 1 hello\n" in text
        assert rqp == ""  # who has no queue 7 says nothing
        assert ring == " 00 00 00 05\n"  # made
        assert tmq == [" 01\n", " 01\n"]  # there already
        assert terminal.sees("metrics and health: http://127.0.0.1:")
        token = (alone.folder / "penstock-data" / "console.token").read_text().strip()
        assert terminal.sees(f"/#token={token}\r\n")
        assert not terminal.sees('"level"')  # logs at a terminal: only what somebody should look at
        terminal.type("\x03")
        assert terminal.end() == 0
        assert terminal.sees("stopped")


def examples(terminal: Terminal) -> list[str]:
    """One line to try each listener."""
    lines = [line for line in terminal.screen.decode().splitlines() if line.startswith("    ")]
    return [line.strip() for line in lines if "metrics" not in line]


def tried(line: str) -> str:
    """What a shell says to it."""
    return subprocess.run(line, shell=True, capture_output=True, text=True, timeout=30, check=True).stdout


def test_health_and_metrics_answer(up: Up) -> None:
    health = up.told["edges"]["tmq"]["health"]
    with socket.create_connection((health["host"], health["port"])) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = connection.makefile("rb").read()
    assert b"penstock_ready" in page


def test_queues_come_from_the_file_in_this_folder(alone: Shell) -> None:
    alone.write("queues.yaml", "metadata: {name: a}\n---\nmetadata: {name: b}\nspec: {maxLength: 5}\n")
    with running(alone) as up:
        assert up.told["queues"] == {"a": "created", "b": "created"}
        assert alone.run("queue", "show", "b", "--json").object["owner"] == "file"
        assert up.end() == 0
    with running(alone) as up:
        assert up.told["queues"] == {"a": "unchanged", "b": "unchanged"}


def test_a_queues_file_may_be_empty(alone: Shell) -> None:
    alone.write("queues.yaml", "# none yet\n")
    with running(alone) as up:
        assert up.told["queues"] == {}


def test_the_store_may_have_a_port(alone: Shell) -> None:
    port = free_port()
    with running(alone, "--store-port", str(port)) as up:
        put(up, b"q", b"x")
        assert alone.run("queue", "list", "q", "--json", "--store", f"redis://127.0.0.1:{port}").object


def test_another_server_program_may_be_named(alone: Shell) -> None:
    with running(alone, "--store-server", "redis-server") as up:
        assert up.told["store"]["server"] == "redis"


def test_edges_use_a_store_that_is_there_already(alone: Shell, tmp_path: Path) -> None:
    server = Server("valkey", tmp_path / "elsewhere").start()
    try:
        assert "not_initialised" in alone.fails("up", code=3, REDIS_URL=server.url)
        alone.run("store", "init", REDIS_URL=server.url)
        with running(alone, "--store", server.url) as up:
            put(up, b"q", b"x")
            assert alone.run("queue", "list", "q", "--json", REDIS_URL=server.url).object
            assert [each.name for each in (alone.folder / "penstock-data").iterdir()] == ["console.token"]
        assert "--store-server" in alone.fails("up", "--store-port", "7777", code=2, REDIS_URL=server.url)
    finally:
        server.end()


def test_the_console_is_there_too(up: Up) -> None:
    url, file = up.told["console"]["url"], Path(up.told["console"]["tokenFile"])
    assert file == up.shell.folder / "penstock-data" / "console.token"
    me = Request(f"{url}api/v1/me", headers={"Authorization": f"Bearer {file.read_text().strip()}"})
    with urlopen(me) as answer:
        assert json.loads(answer.read())["role"] == "admin"
    with urlopen(url) as answer:
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_unless_it_is_switched_off(alone: Shell) -> None:
    with running(alone, "--set", "console.enabled=false") as up:
        assert up.told["console"] is None
        eventually(lambda: len(up.edge_pids) == len(up.told["edges"]))


def test_settings_of_the_console_that_cannot_be_used(alone: Shell) -> None:
    line = alone.fails("up", "--set", "console.host=0.0.0.0", code=2)
    assert "say console.tokens or console.proxy" in line
