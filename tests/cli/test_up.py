"""penstock up: everything runs, whatever dies comes back, nothing stays behind, and no data is lost in silence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from protos.tmq import encode_create, encode_dnq, encode_enq, encode_open
from tests.cli.shell import Shell, Terminal, Up, descendants, lives, running
from tests.servers import Server, eventually, free_port


@pytest.fixture
def up(alone: Shell) -> Iterator[Up]:
    with running(alone) as up:
        yield up


class Client:
    """An old TMQ client: one question, one answer."""

    def __init__(self, connection: socket.socket, replies: BinaryIO, name: bytes) -> None:
        self._socket = connection
        self._file = replies
        self.created = self._ask(encode_create(name), 1) == b"\0"
        self._mqid = self._ask(encode_open(name), 64)

    def _ask(self, request: bytes, size: int) -> bytes:
        """Raises ConnectionError once the other side has gone."""
        self._socket.sendall(request)
        reply = self._file.read(size)
        if len(reply) < size:
            raise ConnectionError
        return reply

    def send(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def enqueue(self, body: bytes) -> bool:
        return self._ask(encode_enq(self._mqid, body), 1) == b"\1"

    def dequeue(self) -> bytes:
        size = int.from_bytes(self._ask(encode_dnq(self._mqid), 4), "big", signed=True)
        return self._file.read(size) if size > 0 else b""


@contextmanager
def connected(up: Up, queue: bytes) -> Iterator[Client]:
    with up.connect() as connection, connection.makefile("rb") as replies:
        yield Client(connection, replies, queue)


def takes(up: Up, queue: bytes) -> bytes:
    """The next message, once somebody is there again who serves it."""

    def ask() -> bytes:
        with connected(up, queue) as client:
            return client.dequeue()

    found: bytes = eventually(ask)
    return found


def put(up: Up, queue: bytes, body: bytes) -> None:
    with connected(up, queue) as client:
        assert client.enqueue(body)


def processes_in(shell: Shell) -> list[str]:
    """Command lines of processes that work in this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cwd").readlink() == shell.folder and lives(int(path.name)):
                found.append((path / "cmdline").read_text())
        except OSError:
            continue
    return found


# Serving -----------------------------------------------------------------------------------------------------------


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
        for listener in ("tmq document: ", "tmq reference: ", "pubsub text: ", "pubsub link: "):
            assert terminal.sees(f"{listener}127.0.0.1:")
        assert not terminal.sees("127.0.0.1:0")
        text, *tmq = [tried(line) for line in examples(terminal)]
        assert "MESSAGE 1 hello\n" in text
        assert tmq == [" 00\n", " 01\n"]  # made, there already
        assert terminal.sees("metrics and health: http://127.0.0.1:")
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
        assert (
            alone.run("queue", "list", "--json", "--store", f"redis://127.0.0.1:{port}").object["name"] == "q"
        )


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
            assert alone.run("queue", "list", "--json", REDIS_URL=server.url).object["name"] == "q"
            assert not (alone.folder / "penstock-data").exists()
        assert "--store-server" in alone.fails("up", "--store-port", "7777", code=2, REDIS_URL=server.url)
    finally:
        server.end()


# What dies comes back ----------------------------------------------------------------------------------------------


def test_the_store_is_killed_and_messages_survive(up: Up) -> None:
    put(up, b"orders", b"acked")
    first = up.store_pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: up.store_pid != first)
    assert takes(up, b"orders") == b"acked"
    assert '"action": "store_restarted"' in up.err
    assert up.end() == 0


def test_an_edge_is_killed_and_comes_back_at_its_address(up: Up) -> None:
    put(up, b"orders", b"acked")
    first = up.edge_pids
    for edge in first:
        os.kill(edge, signal.SIGKILL)
    assert takes(up, b"orders") == b"acked"
    eventually(lambda: up.err.count('"action": "edge_restarted"') == len(first))
    assert not set(up.edge_pids) & set(first)
    assert up.end() == 0


def test_an_edge_of_several_workers_ends_as_a_whole(alone: Shell) -> None:
    with running(alone, "--set", "edges.tmq.workers=2") as up:
        assert len(up.edge_pids) >= 3 + len(up.told["edges"]) - 1
        put(up, b"q", b"x")
        processes = descendants(up.process.pid)
        up.process.kill()
        up.process.wait()
        eventually(lambda: not any(lives(pid) for pid in processes))


# Ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_and_messages_stay(up: Up, signum: signal.Signals) -> None:
    processes = descendants(up.process.pid)
    with connected(up, b"orders") as client:  # still connected: it has to be asked to go
        assert client.enqueue(b"kept")
        assert up.end(signum) == 0
    assert not any(lives(pid) for pid in processes)
    log = (up.shell.folder / "penstock-data" / "store.log").read_text()
    assert "ready to exit, bye bye" in log
    assert up.err.index('"drained"') > 0  # the edge went first, and in order
    with running(up.shell):
        assert up.shell.run("get", "orders").out == b"kept"


def test_killed_with_9_it_leaves_nobody_behind(up: Up) -> None:
    put(up, b"orders", b"kept")
    processes = descendants(up.process.pid)
    assert len(processes) == 1 + len(up.told["edges"])  # the store, and each edge
    up.process.kill()
    up.process.wait()
    eventually(lambda: not any(lives(pid) for pid in processes))
    with running(up.shell) as again:
        assert takes(again, b"orders") == b"kept"


def test_a_new_one_waits_until_the_server_of_a_dead_one_is_gone(up: Up) -> None:
    put(up, b"orders", b"x")
    store = up.store_pid
    os.kill(store, signal.SIGSTOP)  # it cannot hear that its parent has died
    up.process.kill()
    up.process.wait()
    again = Up(up.shell)
    try:
        eventually(lambda: has_open(again.process.pid, "up.lock"))
        assert lives(store)
        assert up.tenant["store_pid"] == store  # nobody has taken its place
        os.kill(store, signal.SIGCONT)
        again.start()
        assert again.store_pid != store
        assert not lives(store)
    finally:
        os.kill(store, signal.SIGKILL) if lives(store) else None
        again.kill()


def has_open(pid: int, name: str) -> bool:
    return any(path.readlink().name == name for path in Path(f"/proc/{pid}/fd").iterdir())


def test_a_second_signal_does_not_wait_for_clients(up: Up) -> None:
    with connected(up, b"orders") as client:
        client.send(encode_enq(bytes(64), b"never finished")[:-1])
        up.process.send_signal(signal.SIGTERM)
        eventually(lambda: '"action": "draining"' in up.err)
        up.process.send_signal(signal.SIGTERM)
        assert up.wait() == 1
    assert '"hurried": true' in up.err


def test_it_can_be_stopped_on_its_way_up(alone: Shell) -> None:
    up = Up(alone)
    try:
        eventually(lambda: (alone.folder / "penstock-data" / "store.sock").exists())
        assert up.end() == 0
        assert not processes_in(alone)
    finally:
        up.kill()


def test_a_second_one_is_refused_and_told_who_runs(up: Up) -> None:
    error = up.shell.fails("up", code=1)
    assert error.startswith("already_running: penstock with pid ")
    assert str(up.process.pid) in error
    put(up, b"q", b"still served")


# It does not come up -----------------------------------------------------------------------------------------------


def test_a_port_in_use_is_one_clear_line(alone: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = f"edges.tmq.listeners.document.port={port}"
        error = alone.fails("up", "--set", taken, "--set", "log.level=ERROR", code=2)
    assert error == (
        f"edge_unusable: tmq cannot start: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "another `penstock up` or `serve` may run there: end it, or change edges.tmq.listeners.document.port"
    )
    assert alone.run("up", code=2, PENSTOCK_EDGES__TMQ__WORKERS="0").err.count("\n") == 1
    assert not processes_in(alone)


def test_a_second_one_on_the_same_ports_is_told_what_to_change(up: Up, tmp_path: Path) -> None:
    health = up.told["edges"]["tmq"]["health"]["port"]
    error = up.shell.run(
        "up", "--json", "--data-dir", str(tmp_path / "2"), "--set", f"health.port={health}", code=2
    )
    told = json.loads(error.err.splitlines()[-1])
    assert told["error"] == "edge_unusable"
    assert "another `penstock up` or `serve` may run there: end it, or change health.port" in told["message"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("metadata: {name: a}\nspec: {maxLenght: 1}", "queues.yaml: document 1 (a): spec.maxLenght: unknown"),
        ("metadata: {name: a}\nspec: {ackLevel: 'replicated:2'}", "needs 2 replicas"),
    ],
)
def test_bad_queues_stop_it_before_it_serves(alone: Shell, content: str, says: str) -> None:
    alone.write("queues.yaml", content)
    error = alone.run("up", code=1 if "replicas" in says else 2).err
    assert says in error
    assert not processes_in(alone)


def test_a_server_that_cannot_start_is_shown(alone: Shell) -> None:
    assert "no program 'nosuchserver'" in alone.fails("up", "--store-server", "nosuchserver", code=3)


def test_a_path_may_be_too_long_for_a_socket(alone: Shell) -> None:
    far = alone.folder / ("x" * 100)
    assert "choose a shorter --data-dir" in alone.fails("up", "--data-dir", str(far), code=2)
    with running(alone, "--data-dir", str(far), "--store-port", str(free_port())):
        assert alone.run("queue", "list", "--data-dir", str(far)).err == ""


def test_a_damaged_log_is_one_clear_line(alone: Shell) -> None:
    (log,) = had_data(alone).glob("*.incr.aof")
    data = log.read_bytes()
    command = data.index(b"\r\n*", len(data) // 2) + 2
    log.write_bytes(data[:command] + b"junk" + data[command + 4 :])
    error = alone.fails("up", code=3)
    assert error.startswith("store_unavailable: the store's server did not start: Bad file format")
    assert "store.log" in error


# Data that is not there --------------------------------------------------------------------------------------------


def had_data(shell: Shell) -> Path:
    with running(shell) as up:
        put(up, b"orders", b"precious")
        assert up.end() == 0
    return shell.folder / "penstock-data" / "appendonlydir"


def test_a_log_that_is_gone_is_refused_and_can_be_restored(alone: Shell) -> None:
    log = had_data(alone)
    backup = alone.folder / "backup"
    shutil.move(log, backup)
    error = alone.fails("up", code=1)
    assert error.startswith("dataset_lost: penstock-data had the data ")
    assert "penstock store init --accept-loss --data-dir penstock-data" in error
    assert not log.exists()  # nothing new stands in the way of the backup
    assert "dataset_lost" in alone.fails("store", "init", code=1)
    shutil.move(backup, log)
    with running(alone):
        assert alone.run("get", "orders").out == b"precious"


def test_an_emptied_log_is_refused(alone: Shell) -> None:
    log = had_data(alone)
    for file in log.glob("*.aof"):
        file.write_bytes(b"")
    assert alone.fails("up", "--set", "log.level=ERROR", code=1).startswith("dataset_lost")
    assert not processes_in(alone)


def test_a_loss_can_be_accepted(alone: Shell) -> None:
    shutil.rmtree(had_data(alone))
    alone.run("store", "init", "--accept-loss", "--data-dir", "penstock-data")
    with running(alone):
        assert alone.run("queue", "list", "--json").out == b""


def test_data_that_vanishes_under_way_ends_it(up: Up) -> None:
    put(up, b"orders", b"precious")
    processes = descendants(up.process.pid)
    shutil.rmtree(up.shell.folder / "penstock-data" / "appendonlydir")
    os.kill(up.store_pid, signal.SIGKILL)
    assert up.wait() == 1
    assert '"error": "dataset_lost"' in up.err
    assert not any(lives(pid) for pid in processes)
