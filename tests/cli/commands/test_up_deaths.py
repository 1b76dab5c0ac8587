"""Test that `penstock up` restarts every process, also before all are ready, and leaves none behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.old_client import put, takes
from tests.cli.shell import NO_CONSOLE, Shell, Up, descendants, lives, processes_in, running
from tests.servers import eventually


def test_process_killed_during_startup_is_restarted(alone: Shell) -> None:
    """Check restarts of the store while queues are declared, and of a process and the store before it serves."""
    names = [f"q{number}" for number in range(500)]
    alone.write("queues.yaml", "".join(f"---\nmetadata: {{name: {name}}}\n" for name in names))
    up = Up(alone, *NO_CONSOLE)
    try:
        first = eventually(lambda: up.store_pid)
        os.kill(first, signal.SIGKILL)
        second = eventually(lambda: up.store_pid, until=lambda pid: pid != first)
        os.kill(eventually(lambda: up.edge_pids, pause_s=0.05)[0], signal.SIGKILL)
        os.kill(second, signal.SIGKILL)
        assert up.start().announcement["queues"] == dict.fromkeys(names, "created")
        put(up, b"q0", b"x")
        assert up.err.count('"action": "store_restarted"') == 2
        assert up.err.count('"action": "edge_restarted"') >= 1
        assert up.end() == 0
    finally:
        up.kill()


@pytest.mark.parametrize("begun", ["the store", "the edges"])
def test_up_can_be_stopped_during_startup(alone: Shell, begun: str) -> None:
    up = Up(alone, *NO_CONSOLE)
    try:
        socket = alone.folder / "penstock-data" / "store.sock"
        eventually(lambda: socket.exists() if begun == "the store" else up.edge_pids, pause_s=0.05)
        assert up.end() == 0
        assert not processes_in(alone)
    finally:
        up.kill()


def test_up_killed_with_9_leaves_no_process(alone: Shell) -> None:
    """Check that the next `up` waits for the old server, which is stopped and does not notice its parent's death."""
    with running(alone, "--set", "edges.tmq.workers=2", *NO_CONSOLE) as up:
        assert len(up.edge_pids) >= 2 + len(up.announcement["edges"])
        put(up, b"orders", b"kept")
        processes, store = descendants(up.process.pid), up.store_pid
        os.kill(store, signal.SIGSTOP)
        up.process.kill()
        up.process.wait()
        again = Up(alone, *NO_CONSOLE)
        try:
            eventually(lambda: not any(lives(pid) for pid in processes if pid != store))
            eventually(lambda: has_open(again.process.pid, "up.lock"))
            assert lives(store)
            assert up.tenant["store_pid"] == store  # it was not replaced
            os.kill(store, signal.SIGCONT)
            assert takes(again.start(), b"orders") == b"kept"
            assert not lives(store)
        finally:
            os.kill(store, signal.SIGKILL) if lives(store) else None
            again.kill()


def has_open(pid: int, name: str) -> bool:
    return any(path.readlink().name == name for path in Path(f"/proc/{pid}/fd").iterdir())
