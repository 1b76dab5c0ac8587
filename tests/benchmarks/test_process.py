"""Test the servers of a run: each ends with it in all cases, and a missing one gives the reason."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tools
from benchmarks.machine import cpu_s, current_commit, describe, resident_kib, tree
from benchmarks.process import NotRun, Workshop, find_program, free_port, workshop

# A server that leaves its child running on SIGTERM: the child must be ended too.
PARENT = "import subprocess, sys; c = subprocess.Popen(['sleep', '600']); print(c.pid, flush=True); c.wait()"


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start_parent(place: Workshop) -> list[int]:
    def ready() -> None:
        if not (place.folder / "parent.log").read_text():
            raise OSError

    daemon = place.start("parent", [sys.executable, "-c", PARENT], ready)
    return [daemon.pid, int(daemon.log.read_text())]


@pytest.mark.parametrize("failure", [None, RuntimeError, KeyboardInterrupt])
def test_servers_and_their_children_end_with_the_run(
    tmp_path: Path, failure: type[BaseException] | None
) -> None:
    pids: list[int] = []
    with pytest.raises(failure or SystemExit), workshop(tmp_path) as place:  # noqa: PT012
        pids = start_parent(place)
        assert all(map(exists, pids))
        if failure:
            raise failure
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)  # ends at the signal
    wait_for(lambda: not any(map(exists, pids)))
    assert list(tmp_path.iterdir()) == []


def test_server_that_exits_at_once_gives_its_last_line(place: Workshop) -> None:
    def never() -> None:
        raise OSError

    with pytest.raises(NotRun, match=r"broken ended with 3: no such disk"):
        place.start("broken", ["sh", "-c", "echo starting; echo no such disk; exit 3"], never)


def test_stopped_process_gets_sigterm(place: Workshop) -> None:
    """Check that a stopped process, such as one waiting for its turn, ends in order before the kill timeout."""
    ended = place.folder / "ended"
    script = f"trap 'echo > {ended}; exit' TERM; echo; while :; do sleep 0.01; done"

    def ready() -> None:
        if not (place.folder / "still.log").read_text():
            raise OSError

    daemon = place.start("still", ["sh", "-c", script], ready)
    os.kill(daemon.pid, signal.SIGSTOP)
    place.stop(daemon)
    assert ended.exists()


def test_one_can_be_stopped_before_the_others(place: Workshop) -> None:
    daemon = place.start("sleeper", ["sleep", "600"], lambda: None)
    place.stop(daemon)
    assert not exists(daemon.pid)


def test_free_ports_and_programs() -> None:
    assert 1024 < free_port() < 65536
    assert find_program("no-such-program", "sh")
    assert find_program("no-such-program") is None


def test_the_machine_is_described(tmp_path: Path) -> None:
    machine = describe(tmp_path, 0.2)
    assert machine.cores >= 1
    assert machine.fdatasync_us > 0
    assert machine.filesystem in str(machine)
    assert 0 <= machine.stalled < 1
    assert "12.5% of the time in ones over 10 ms" in str(replace(machine, stalled=0.125))
    assert isinstance(current_commit(), str)


def test_a_process_is_measured_with_its_children(place: Workshop) -> None:
    parent, child = start_parent(place)
    assert tree(parent) == [parent, child]
    assert resident_kib(parent) > resident_kib(child) > 0
    assert cpu_s(parent) >= 0


def test_a_built_nats_server_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    tools.NATS.program.parent.mkdir()
    tools.NATS.program.touch()
    assert tools.find_nats_server() == str(tools.NATS.program)


def test_where_none_can_be_built_the_system_is_asked_and_then_the_reason_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text(
        "#!/bin/sh\n[ $1 = version ] && exec echo go1.99\necho fetching >&2\necho no network >&2\nexit 1\n"
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tools, "find_program", lambda name: f"/usr/sbin/{name}")
    assert tools.find_nats_server() == "/usr/sbin/nats-server"
    monkeypatch.setattr(tools, "find_program", lambda name: None)
    with pytest.raises(NotRun, match="go install: fetching; no network"):
        tools.find_nats_server()
