"""penstock up: whatever dies is started again, also before everything is ready; nothing stays behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from protos.tmq import encode_enq
from tests.cli.old_client import connected, put, takes
from tests.cli.shell import Shell, Up, descendants, lives, processes_in, running
from tests.servers import PATIENCE_S, eventually


def test_the_store_is_killed_and_messages_survive(up: Up) -> None:
    put(up, b"orders", b"acked")
    first = up.store_pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: up.store_pid != first)
    assert takes(up, b"orders") == b"acked"
    assert '"action": "store_restarted"' in up.err
    assert up.end() == 0


def test_an_edge_of_several_workers_ends_as_a_whole(alone: Shell) -> None:
    with running(alone, "--set", "edges.tmq.workers=2") as up:
        assert len(up.edge_pids) >= 3 + len(up.told["edges"]) - 1
        put(up, b"q", b"x")
        processes = descendants(up.process.pid)
        up.process.kill()
        up.process.wait()
        eventually(lambda: not any(lives(pid) for pid in processes))


# before everything is ready


@pytest.fixture
def coming_up(alone: Shell) -> Iterator[Up]:
    up = Up(alone)
    yield up
    up.kill()


@pytest.mark.parametrize("edge", ["tmq", "pubsub"])
def test_an_edge_that_is_killed_before_it_serves_is_started_again(coming_up: Up, edge: str) -> None:
    os.kill(eventually(lambda: serving(coming_up, edge)), signal.SIGKILL)
    put(coming_up.start(), b"q", b"x")
    assert coming_up.err.count('"action": "edge_restarted"') == 1
    assert coming_up.end() == 0


def test_a_store_that_is_killed_before_the_edges_serve_is_started_again(coming_up: Up) -> None:
    eventually(lambda: serving(coming_up, "tmq"))
    os.kill(coming_up.store_pid, signal.SIGKILL)
    put(coming_up.start(), b"q", b"x")
    assert coming_up.err.count('"action": "store_restarted"') == 1
    assert coming_up.end() == 0


def test_a_store_that_is_killed_before_the_queues_are_declared_gets_them_all_the_same(alone: Shell) -> None:
    documents = "".join(f"---\nmetadata: {{name: q{number}}}\n" for number in range(500))
    alone.write("queues.yaml", documents)
    up = Up(alone)
    try:
        store = eventually(lambda: up.store_pid)
        os.kill(store, signal.SIGKILL)
        queues = up.start().told["queues"]
        assert len(queues) == 500
        assert set(queues.values()) == {"created"}
        assert len(alone.run("queue", "list").out.splitlines()) > 500
        assert '"action": "store_restarted"' in up.err
    finally:
        up.kill()


def serving(up: Up, edge: str) -> int:
    """The process of this edge, 0 if it has not begun."""
    for pid in descendants(up.process.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if words[-1:] == [""] and "serve" in words and words[words.index("serve") + 1] == edge:
            return pid
    return 0


# ends


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
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


def test_a_terminal_that_goes_ends_it_in_order(alone: Shell) -> None:
    with alone.terminal("up", "--set", "log.level=INFO") as terminal:
        eventually(lambda: terminal.sees("ready; Ctrl-C"))
        processes = descendants(terminal.process.pid)
        terminal.close()
        assert terminal.process.wait(PATIENCE_S) == 0
    assert not any(lives(pid) for pid in processes)
    assert "ready to exit, bye bye" in (alone.folder / "penstock-data" / "store.log").read_text()


def test_killed_with_9_it_leaves_nobody_behind(up: Up) -> None:
    put(up, b"orders", b"kept")
    number = 2 + len(up.told["edges"])  # the store, the console, and each edge
    processes = eventually(
        lambda: descendants(up.process.pid), until=lambda processes: len(processes) == number
    )
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


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.04, 0.2])
def test_it_can_be_stopped_on_its_way_up(alone: Shell, after_s: float) -> None:
    """While the store is set up, while edges are made, and while they start."""
    up = Up(alone)
    try:
        eventually(lambda: (alone.folder / "penstock-data" / "store.sock").exists())
        time.sleep(after_s)
        assert up.end() == 0
        assert not processes_in(alone)
    finally:
        up.kill()


def test_a_second_one_is_refused_and_told_who_runs(up: Up) -> None:
    error = up.shell.fails("up", code=1)
    assert error.startswith("already_running: penstock with pid ")
    assert str(up.process.pid) in error
    put(up, b"q", b"still served")
